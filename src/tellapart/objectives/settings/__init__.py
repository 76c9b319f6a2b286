"""Settings of every kind of objective, a file a family. Nothing here imports torch."""

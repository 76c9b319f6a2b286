"""Settings of every kind of captioner, a file a family. Nothing here imports torch."""

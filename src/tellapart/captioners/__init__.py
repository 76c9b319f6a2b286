"""Networks that write captions, and the folder in which one is kept."""

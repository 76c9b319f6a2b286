"""Checkpoints that others trained: where they lie, and what may be wrong with them."""

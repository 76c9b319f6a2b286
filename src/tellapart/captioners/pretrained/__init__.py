"""Captioners of transformers behind the project's own protocol."""

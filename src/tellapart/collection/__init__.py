"""Captioning a collection of pictures against itself: each caption is to find its own among those like it."""

"""Captioned image sets: reading, checking, text and vocabulary, pictures, batches, drawn scenes."""

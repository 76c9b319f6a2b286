"""Retrievers: how close a sentence is to a picture."""

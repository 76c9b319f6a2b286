"""Drawn scenes whose truth is known: `scenes` says what is there, `drawing` paints it, `language` tells it.

With them a test can ask of any caption whether it is true of a picture and whether it singles the picture
out among others, in seconds and without a download. `dataset` writes them as an ordinary captioned image set.
"""

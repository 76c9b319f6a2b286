"""Measurements on real data, too slow for the tests; each prints what it found."""

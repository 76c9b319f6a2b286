"""From pixels to features: encoders, and the cache that remembers what they saw."""

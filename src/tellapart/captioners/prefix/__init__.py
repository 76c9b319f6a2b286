"""A visual prefix before a causal language model, after ClipCap (Mokady et al. 2021)."""

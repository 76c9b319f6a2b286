"""The papers' experiments run anew: what is run, what came out, and which of their claims hold."""

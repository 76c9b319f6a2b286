"""From a captioner's probabilities to captions."""

"""What training minimises: pure losses a token, lifted once to objectives."""

"""A dual encoder: a picture and a sentence each become a vector, by two networks that never meet."""

"""Files of pictures as what surrounds their descriptions: all other bytes are handed on as they are."""

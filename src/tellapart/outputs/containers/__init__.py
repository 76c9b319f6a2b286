"""Files of pictures as what surrounds their XMP packet: all other bytes are handed on as they are."""

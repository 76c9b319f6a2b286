"""Choosing among candidate captions: by consensus, or by how well each tells its picture from others."""

"""What a retriever made of a folder's pictures and captions, remembered on disk and kept up to date."""

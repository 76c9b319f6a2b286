"""The Penn Treebank tokenizer that captions are scored with, without Java: `tokenizer` is the way in."""

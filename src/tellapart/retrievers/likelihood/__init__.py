"""Any captioner as a retriever: how likely it finds each caption of each picture."""

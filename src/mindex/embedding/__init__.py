"""Vectors for records: embedding what waits, changing the model, noticing a model that changed behind its name."""

"""Text and JSON of everything that mindex prints: pure functions on values, one module per subject."""

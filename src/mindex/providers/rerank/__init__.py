"""Question and texts in, scores out."""

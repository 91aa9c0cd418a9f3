"""Text in, vectors out."""

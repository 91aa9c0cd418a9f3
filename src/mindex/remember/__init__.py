"""Words in, records out."""

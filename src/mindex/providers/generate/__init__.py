"""Words in, words out."""

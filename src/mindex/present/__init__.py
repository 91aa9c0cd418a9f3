"""Hits in, words out: pure functions, one place for text and JSON."""

"""Rerankers: a query and texts in, scores out."""

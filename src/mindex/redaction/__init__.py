"""Redaction: secrets and private sections are removed from every text before it is stored."""

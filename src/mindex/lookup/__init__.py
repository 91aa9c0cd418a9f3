"""Lookup: what `get` takes (ids, paths, line spans, globs, special references), resolved to records."""

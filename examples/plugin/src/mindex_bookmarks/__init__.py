"""Bookmarks of a browser in mindex: an importer, a command that prints their addresses, and a small embedder."""

MINDEX_INTERFACE = 1

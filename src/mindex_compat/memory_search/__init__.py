"""The commands of memory-search, `mindex ms`, and its addresses over HTTP."""

"""The default engine: one SQLite file with all data of a memory."""

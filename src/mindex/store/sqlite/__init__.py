"""The default store: one SQLite file is the whole truth."""

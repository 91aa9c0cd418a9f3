"""What the SQLite and the PostgreSQL engine say in the same SQL, written once."""

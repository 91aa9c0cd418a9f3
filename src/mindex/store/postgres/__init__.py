"""The engine for teams: a schema in a PostgreSQL database with pgvector. Only this package imports psycopg."""

"""The store interface, the rules that all engines share, and the SQLite engine. The only package with SQL."""

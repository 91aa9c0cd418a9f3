"""Golden files: every text and JSON output over one fixed database, compared byte for byte.

`scripts/` says what is run, `expected/` holds what was printed, `data/` what the database is built from. The tests use
only the command line and an MCP client; `freeze.py` is the one module that depends on the implementation.

After an intended change: `python -m pytest tests/golden --update-golden`, then read the diff of `expected/`.
"""

"""The command `mindex eval`: question sets with known answers, run against a memory that is filled for it."""

MINDEX_INTERFACE = 1

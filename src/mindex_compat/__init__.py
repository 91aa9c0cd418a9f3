"""What other programs left: their tools, their databases, and two interfaces of language model vendors."""

MINDEX_INTERFACE = 1

"""mindex: one memory for every AI agent on a machine."""

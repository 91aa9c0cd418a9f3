"""Hooks: what agents run at the start of a session, before a prompt and at the end of an answer."""

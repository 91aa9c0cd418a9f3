"""The page for people and the HTTP API for programs, over one memory."""

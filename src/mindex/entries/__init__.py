"""Entries: memories, turns, profiles, contacts, projects, skills and notes, and the rules they follow."""

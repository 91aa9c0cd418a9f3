"""Limits of what is stored and asked for, in one table. `docs/memories.md` lists them.

They keep one caller from making a record that no output can show, or a request that no machine can serve. More than a
limit is an error at once, before the value is redacted or stored; an import leaves out the row and names it.
"""

MAX_TEXT_BYTES = 1024 * 1024  # of a memory, or of both sides of a turn
MAX_SUMMARY = 2_000  # characters, as below
MAX_TAG = 100
MAX_TAGS = 100  # of one record; the same for entities
MAX_NAME = 200  # of an agent, a session, a speaker, a collection, a contact, project or skill, an entity
MAX_FIELD = 10_000  # every other property, field, reason or value
MAX_VALUES = 1_000  # in all fields of one record, and in a profile: every value that is not an object or list
MAX_VALUES_BYTES = 256 * 1024  # of these as JSON
MAX_PATTERNS = 1_000  # of `--exclude` of one collection
MAX_REFERENCES = 100  # of one `get`
MAX_FILE_BYTES = 20_000_000  # that `get` reads for some of its lines

"""The rules of a store that do not depend on an engine: pure functions, and functions over an engine's statements."""

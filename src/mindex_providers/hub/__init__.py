"""Downloads models from a hub."""

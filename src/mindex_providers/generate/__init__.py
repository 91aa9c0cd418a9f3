"""Language models: one module per provider, each with `create(settings)`."""

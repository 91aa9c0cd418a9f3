"""Models behind doors: each provider is one file, imported only when it is used."""

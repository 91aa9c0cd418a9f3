"""One module per program whose database can be imported, each with an `importer`."""

"""One file per format that can be read: a module with an `importer`, found by its name in `transfer.base`."""

"""One module per format that can be imported, each with an `importer`; `transfer/importer_base.py` finds them.

Shared by several: `foreign_values` (values of other programs) and `source_files`.
"""

"""One module per format that can be imported, each with an `importer`; `transfer/format_detection.py` lists them.

Shared by several: `foreign_values` (values of other programs), `sqlite_source` (databases), `json_lines` and
`folder_files`.
"""

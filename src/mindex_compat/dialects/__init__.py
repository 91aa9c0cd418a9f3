"""One module per dialect, each with a `DIALECT`; `mindex_compat.tools` lists them."""

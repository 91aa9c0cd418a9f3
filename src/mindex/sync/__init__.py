"""Two machines, one memory: changes are exchanged through files in a folder, and merged."""

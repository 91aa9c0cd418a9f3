"""Export and import: all entries leave as JSONL or markdown, and are read from these and from other memory programs."""

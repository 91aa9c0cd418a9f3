"""In and out: everything that was told leaves as JSONL or markdown, and comes in from these and from other memories."""

"""Models of the Hugging Face hub: which are known, what was pulled, and how one is downloaded."""

"""The token counter: an estimate of what a text costs a model, the same for every output."""


def count_tokens(text: str) -> int:
    """UTF-8 bytes divided by four, rounded up."""
    return -(-len(text.encode("utf-8", "replace")) // 4)

"""Embedders, rerankers and language models. Each provider is one module per role, imported only when it is used."""

"""Providers of models that few use: llama.cpp with GGUF files, Cloudflare Workers AI, downloads from a model hub."""

MINDEX_INTERFACE = 1

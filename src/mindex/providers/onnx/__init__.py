"""ONNX models on this machine: found, opened fast, run on the processor. Shared by embedders and rerankers."""

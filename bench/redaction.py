"""How many secrets are found, and how often ordinary text is taken for one: `python bench/redaction.py --data FOLDER`.

Secrets are made at random for each named kind, in five contexts; those in everyday words are invented sentences, half
of which no rule was tuned on. Ordinary text are the documents and queries of retrieval sets in BEIR's layout, or the
text files of a folder. The seed of the values is printed: a new one makes new values.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from time import process_time

from mindex.redaction.redactor import Redactor

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from tests.redaction.everyday_sentences import count_found, with_secrets, without_secrets  # noqa: E402
from tests.redaction.secret_values import CONTEXTS, KINDS, in_context, make_value, secret_part  # noqa: E402 - after the path

_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|[。！？]")
_SUFFIXES = (".md", ".markdown", ".mdx", ".txt", ".rst")


def main(arguments: Sequence[str] | None = None) -> int:
    options = _options(arguments)
    seed = options.seed if options.seed is not None else random.SystemRandom().randrange(10**6)
    found, missed = measure_found(seed)
    total = len(KINDS) * len(CONTEXTS)
    print(f"kinds {len(KINDS)}, contexts {len(CONTEXTS)}, seed {seed}")
    print(f"found {found} of {total} ({100 * found / total:.2f} %)")
    for name, context, text in missed if options.show else ():
        print(f"  missed: {name}, {context}: {text!r}")
    print_everyday(options.show)
    for folder in options.data:
        count, sentences, alarms, size, seconds = measure_alarms(folder)
        print(
            f"{folder}: {len(alarms)} of {count:,} paragraphs changed, {1000 * len(alarms) / max(sentences, 1):.2f} per"
            f" 1,000 of {sentences:,} sentences, {size / 1e6 / seconds:.1f} MB/s"
        )
        for kind, times in Counter(kind for kind, _ in alarms).most_common():
            print(f"  {times:4} {kind}")
        for kind, text in alarms if options.show else ():
            print(f"  {kind}: {text!r}")
    return 0


def print_everyday(show: bool) -> None:
    """Print how many invented sentences are redacted as they should be."""
    redact = Redactor().redact_text
    for name, held_aside in (("for tuning", False), ("held aside", True)):
        secrets = tuple(sentence for sentence in with_secrets() if sentence.held_aside == held_aside)
        texts = [sentence for sentence in without_secrets() if sentence.held_aside == held_aside]
        found, missed = count_found(secrets, redact)
        changed = sum(redact(sentence.text) != sentence.text for sentence in texts)
        print(
            f"everyday sentences {name}: found {found} of {len(secrets)}, changed {changed} of {len(texts)} without one"
        )
        for text in missed if show and not held_aside else ():
            print(f"  missed: {text!r}")


def measure_found(seed: int) -> tuple[int, list[tuple[str, str, str]]]:
    """How many values are gone from their texts, and kind, context and text of those that are not."""
    rng, redactor = random.Random(seed), Redactor()
    found, missed = 0, []
    for kind in KINDS.values():
        for context in CONTEXTS:
            value = make_value(kind, rng)
            text = in_context(kind, value, context, rng)
            left = redactor.redact_text(text)
            gone = secret_part(value) not in left and value[-6:] not in left
            found += gone
            if not gone:
                missed.append((kind.name, context, left))
    return found, missed


def measure_alarms(folder: Path) -> tuple[int, int, list[tuple[str, str]], int, float]:
    """Paragraphs, sentences, paragraphs that redaction changes (kind and text around), size, seconds of redaction."""
    redactor = Redactor()
    count = sentences = size = 0
    seconds = 0.0
    alarms: list[tuple[str, str]] = []
    for paragraph in _paragraphs(folder):
        count += 1
        sentences += max(1, sum(len(part.strip()) > 1 for part in _SENTENCE_END.split(paragraph)))
        size += len(paragraph)
        start = process_time()
        result = redactor.redact(paragraph)
        seconds += process_time() - start
        if result.redacted:
            at = result.text.index("[redacted:")
            alarms.append((result.redacted[0], paragraph[max(0, at - 90) : at + 60]))
    return count, sentences, alarms, size, max(seconds, 1e-9)


def _paragraphs(folder: Path) -> Iterator[str]:
    for path in sorted(folder.rglob("*")):
        if path.name in ("corpus.jsonl", "queries.jsonl"):
            for line in path.read_text(encoding="utf-8").splitlines():
                document = json.loads(line)
                yield from _split(f"{document.get('title', '')}\n{document['text']}")
        elif path.suffix in _SUFFIXES and path.is_file():
            yield from _split(path.read_text(encoding="utf-8", errors="replace"))


def _split(text: str) -> Iterator[str]:
    return (part for part in text.split("\n\n") if part.strip())


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, nargs="*", default=[], help="folders of ordinary text")
    parser.add_argument("--seed", type=int, help="of the values; a random one if left out")
    parser.add_argument("--show", action="store_true", help="print every miss and every false alarm")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())

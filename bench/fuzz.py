"""Sends hostile texts to every text argument of every tool, command, API operation and file, for as long as is wanted.

    python bench/fuzz.py --minutes 10 --seed 7

Each must be answered, or refused with a clear error; none may raise, hang or take more than linear time. The targets
are found in the schemas and tables of the interfaces themselves (tests/fuzz_targets.py), the texts are those of
tests/hostile.py. The exit code is 0 if every target held.
"""

from __future__ import annotations

import argparse
import faulthandler
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
os.environ.setdefault("MINDEX_CACHE_DIR", tempfile.gettempdir())

from tests.fuzz_laws import CostGrows, check_cost, check_target  # noqa: E402 - after the path is set
from tests.fuzz_targets import Broken, all_targets  # noqa: E402 - likewise
from tests.hostile import UNITS  # noqa: E402 - likewise

_HANG_SECONDS = 300
_EXAMPLES = 25  # of each target, in each round


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--seed", type=int, default=0, help="the same seed sends the same texts")
    parser.add_argument("--only", default="", metavar="TEXT", help="targets whose name holds this")
    given = parser.parse_args(arguments)
    end = time.monotonic() + given.minutes * 60
    sent: Counter[str] = Counter()
    broken: dict[str, str] = {}
    measured = 0
    with tempfile.TemporaryDirectory(prefix="mindex-fuzz-") as folder, all_targets(Path(folder)) as targets:
        chosen = [target for target in targets if given.only in target.name]
        chance = random.Random(given.seed)
        seed = given.seed
        while time.monotonic() < end:
            seed += 1
            for target in chance.sample(chosen, len(chosen)):
                if time.monotonic() >= end:
                    break
                if target.name in broken:
                    continue
                faulthandler.dump_traceback_later(_HANG_SECONDS, exit=True)  # a hang is reported as where it hangs
                try:
                    sent[target.name.partition(":")[0].partition(" ")[0]] += check_target(target, seed, _EXAMPLES)
                    if chance.random() < 0.2:
                        check_cost(target, chance.choice(UNITS))
                        measured += 1
                except (Broken, CostGrows) as error:
                    broken[target.name] = "\n".join([str(error), *getattr(error, "__notes__", ())])
                finally:
                    faulthandler.cancel_dump_traceback_later()
        print("| interface | hostile texts sent |\n|---|---|")
        for interface, count in sorted(sent.items()):
            print(f"| {interface} | {count:,} |")
        print(f"| all, {len(chosen)} targets | {sent.total():,} |")
        print(f"| costs compared at n and 4n | {measured:,} |")
        print(f"| targets that failed | {len(broken)} |\n")
        for name, error in broken.items():
            print(f"{name}: {error}\n")
    print("passed" if not broken else "FAILED")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())

"""The weights of the judgement, per group of kinds, fitted by `bench/fit_judgement.py` and rounded.

Those of `kind`, `words` and `question` are chosen near what its step `calibrate` finds, so that foreign questions
stay silent; those of entries without vectors are older. The weights of names are decisions: what the query names
comes before what only mentions it. docs/quality.md says what else was chosen, and what every set gets from weights
that were fitted without it.
"""

from collections.abc import Mapping

from mindex.store.rules.kind_groups import KindGroup

TERMS = (
    "kind", "cosine", "unread", "keyword", "unread_keyword", "matched_share", "surprise", "look_up", "length", "words",
    "question", "unlisted", "strict",
)  # fmt: skip
WITH_VECTORS: Mapping[KindGroup, tuple[float, ...]] = {
    "file": (-2.6, 0.92, -0.73, 1.0, 6.15, 0.43, 1.50, 2.78, 0.0, -0.8, -1.1, 0.8, 1.0),
    "entry": (-1.77, 1.41, -0.73, 0.29, 6.15, 0.43, 0.1, 2.78, -0.35, -1.84, 0.65, 0.8, 1.0),
    "turn": (-2.9, 1.35, -0.73, 1.0, 6.15, 0.43, 1.0, 2.78, 0.02, -0.96, -0.34, 0.8, 1.0),
}
BY_WORDS: Mapping[KindGroup, tuple[float, ...]] = {
    "file": (-5.6, 0.0, 0.0, 0.86, 0.0, 2.15, 3.23, 2.87, 0.0, -0.31, -0.59, 0.0, 1.0),
    "entry": (-3.95, 0.0, 0.0, 0.3, 0.0, 2.23, 1.90, 2.87, -0.5, -1.09, 0.96, 0.0, 1.0),
    "turn": (-5.2, 0.0, 0.0, 0.3, 0.0, 2.15, 2.91, 2.87, 0.35, -0.65, 0.04, 0.0, 1.0),
}
NAMED: Mapping[str, float] = {
    "title": 5.0, "heading": 4.5, "file": 4.0, "part": 3.5, "defined": 5.5, "literal": 2.5,
}  # fmt: skip
NEIGHBOUR = 1.81
# Below all three, no candidate stands out: of 2,500 questions with an answer, none gets "nothing is relevant", and of
# 2,100 three-word forms .7 %. The surprise is in nats.
MIN_LOG_ODDS = -3.0
MIN_COSINE = 0.25
MIN_SURPRISE = 12.0

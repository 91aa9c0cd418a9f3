"""The checks of `doctor` that every SQL engine makes, as it reports them."""

from mindex.datatypes import Check

SAMPLE = 200  # records that are analysed again
OPTIMIZE = "run `mindex optimize`"


def words_check(lacking: int, stray: int, otherwise: str = "") -> Check:
    """Every live record is in the keyword index, and nothing else is. `otherwise` is what else is wrong with it."""
    bad = f"{lacking} records lack words, {stray} entries lack a record" if lacking or stray else otherwise
    return Check("keyword index", not bad, bad or "every record is in the keyword index", OPTIMIZE)


def vectors_check(stray: int, broken: int, otherwise: str = "") -> Check:
    bad = f"{stray} vectors lack a record, {broken} are malformed" if stray or broken else otherwise
    fix = f"{OPTIMIZE}, then `mindex backfill`"
    return Check("vectors", not bad, bad or "every vector belongs to a record", fix)


def sample_check(analysed: int, different: int) -> Check:
    message = f"{analysed} records analysed again, {different} differ"
    return Check("words of a sample", not different, message, OPTIMIZE)

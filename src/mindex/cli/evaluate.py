"""The command that says how good the answers are: eval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import click

from mindex.cli.output import Context, ProgressBar
from mindex.errors import UsageError
from mindex.evaluate.assessment import EvaluationOptions, assess, variants_of
from mindex.evaluate.cached_models import open_cache
from mindex.evaluate.comparison import compared, read_earlier
from mindex.evaluate.foreign_topics import foreign_topics
from mindex.evaluate.parameter_sweep import sweep
from mindex.model.evaluation import METRICS, NDCG
from mindex.present.evaluation import assessments_json, assessments_text, silence_text, sweeps_text
from mindex.store.base import Store


@dataclass(frozen=True, slots=True)
class _Request:
    """What the command was told, beside what is wanted of each set."""

    folders: tuple[Path, ...]
    options: EvaluationOptions
    metric: str


@click.command("eval")
@click.argument("folders", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="DIR...")
@click.option("--modes", default="", metavar="M,M", help="Only these: keyword, vector, hybrid, hybrid+rerank, …")
@click.option("--rerank", is_flag=True, help="Measure hybrid with the reranker, too.")
@click.option("--expand", is_flag=True, help="Measure hybrid with expanded questions, too.")
@click.option(
    "--sample", "--limit-queries", type=click.IntRange(1), metavar="N", help="Only N questions a set, always the same."
)
@click.option("--split", default="test", show_default=True, metavar="S", help="Which judgements: qrels/S.tsv.")
@click.option("--skip-adversarial/--adversarial", default=True, show_default=True, help="Without those that mislead.")
@click.option("--category", default="", metavar="FIELD", help="Split the table by this field of the questions.")
@click.option("--worst", type=click.IntRange(0), default=0, metavar="N", help="Explain the N worst answers.")
@click.option("--set", "given", multiple=True, metavar="KEY=VALUE", help="A setting of `mindex config` for this run.")
@click.option("--sweep", "swept", multiple=True, metavar="KEY=A,B,C", help="Try a setting at several values.")
@click.option("--compare", type=click.Path(path_type=Path), metavar="OTHER.json", help="Test against an earlier run.")
@click.option("--metric", type=click.Choice(METRICS), help=f"What to sweep or compare (default: {NDCG}).")
@click.option("--silence", is_flag=True, help="Put each set's questions to the other sets' texts.")
@click.option("--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the filled memories there.")
@click.pass_obj
def eval_command(
    context: Context,
    /,
    folders: tuple[Path, ...],
    modes: str,
    rerank: bool,
    expand: bool,
    sample: int | None,
    split: str,
    skip_adversarial: bool,
    category: str,
    worst: int,
    given: tuple[str, ...],
    swept: tuple[str, ...],
    compare: Path | None,
    metric: str | None,
    silence: bool,
    keep: Path | None,
) -> None:
    """Say how good the answers are, on sets of questions whose answers are known.

    DIR holds queries.jsonl, qrels/test.tsv and corpus.jsonl or files/ (the layout of BEIR), or it is a folder of your
    own notes with a questions.yaml: a list of `question` and `answer` (a path, or several), or `none: true`.
    """
    options = EvaluationOptions(
        variants=tuple(part.strip() for part in modes.split(",") if part.strip()),
        rerank=rerank,
        expand=expand,
        settings=dict(map(_pair, given)),
        split=split,
        sample=sample,
        adversarial=not skip_adversarial,
        category=category,
        worst=worst,
        keep=keep,
    )
    asked = _Request(_distinct(folders), options, metric or NDCG)
    if (silence or swept) and (compare or keep or worst or category):
        raise UsageError("--silence and --sweep print tables of their own", "leave the other options out")
    if metric and not (swept or compare):
        raise UsageError("--metric says what to sweep or compare", "give --sweep or --compare, too")
    if silence and swept:
        raise UsageError("--silence and --sweep are two questions", "ask one after the other")
    cache = open_cache()
    try:
        if silence:
            _silence(context, asked, cache)
        elif swept:
            _sweep(context, asked, swept, cache)
        else:
            _assess(context, asked, compare, cache)
    finally:
        cache.close()


def _assess(context: Context, asked: _Request, other: Path | None, cache: Store) -> None:
    earlier = read_earlier(other) if other is not None else None
    with ProgressBar() as bar:
        found = [assess(folder, asked.options, cache, bar) for folder in asked.folders]
    if earlier is not None:
        found = [compared(one, earlier, asked.metric) for one in found]
    context.emit(assessments_json(found), lambda: assessments_text(found))


def _sweep(context: Context, asked: _Request, swept: Sequence[str], cache: Store) -> None:
    values = {key: [one.strip() for one in value.split(",") if one.strip()] for key, value in map(_pair, swept)}
    with ProgressBar() as bar:
        found = sweep(
            asked.folders,
            values,
            asked.options,
            cache,
            variant=_single_variant(asked.options),
            metric=asked.metric,
            report=bar,
        )
    context.emit({"sweeps": found}, lambda: sweeps_text(found))


def _silence(context: Context, asked: _Request, cache: Store) -> None:
    if len(asked.folders) < 2:
        raise UsageError("silence needs foreign questions", "name two sets or more")
    with ProgressBar() as bar:
        found = foreign_topics(asked.folders, asked.options, cache, variant=_single_variant(asked.options), report=bar)
    context.emit(found, lambda: silence_text(found))


def _distinct(folders: Sequence[Path]) -> tuple[Path, ...]:
    distinct = tuple(dict.fromkeys(folder.resolve() for folder in folders))
    names = [folder.name for folder in distinct]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two of these sets are called '{name}'", "rename one of the folders")
    return distinct


def _single_variant(options: EvaluationOptions) -> str:
    """Sweeps and silence look at one way of searching: the one asked for, or hybrid with what was asked for."""
    if len(options.variants) > 1:
        raise UsageError("--sweep and --silence look at one mode", "name one with --modes")
    variant = next(iter(options.variants), "hybrid") + "+expand" * options.expand + "+rerank" * options.rerank
    return variants_of(replace(options, variants=(variant,), rerank=False, expand=False))[0]


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"'{text}' is not KEY=VALUE", "write, for example, search.weights.blend=0.4")
    return key.strip(), value.strip()

"""The command `mindex eval`: its options, and what is measured for them."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from inspect import signature
from pathlib import Path
from typing import Any

import click

from mindex.cli.open_memory import Context, Printable
from mindex.cli.output import ProgressBar
from mindex.errors import UsageError
from mindex.evaluation_parts import check_budget, to_json
from mindex_eval.assessment import EvaluationOptions, assess, variants_of
from mindex_eval.cached_models import open_cache
from mindex_eval.comparison import compared, read_earlier
from mindex_eval.excerpts import BUDGETS, AnswerShape
from mindex_eval.foreign_topics import foreign_topics
from mindex_eval.named_sets import parse_set_name
from mindex_eval.parameter_sweep import sweep
from mindex_eval.results import METRICS, NDCG
from mindex_eval.tables import (
    assessments_json,
    assessments_text,
    left_out_text,
    mixture_text,
    silence_text,
    sweeps_text,
)
from mindex_eval.together import leave_one_out, mixture
from mindex_eval.truth_report import measure_truth, truth_text

_NOT_WITH_TRUTH = ("compare", "modes", "metric", "worst", "on", "category", "keep", "expand", "rerank", "sample")
_MORE_HITS = 12  # with a token budget, more hits must not make an answer contain less


@click.command("eval", short_help="Measure search quality.")
@click.argument("folders", nargs=-1, type=click.Path(path_type=Path), metavar="SET...")
@click.option("--modes", default="", metavar="M,M", help="Search variants: keyword, vector, hybrid, hybrid+rerank …")
@click.option("--rerank", is_flag=True, help="Also measure hybrid with the reranker.")
@click.option("--expand", is_flag=True, help="Also measure hybrid with expanded questions.")
@click.option(
    "--sample",
    "--limit-queries",
    type=click.IntRange(1),
    metavar="N",
    help="Only N questions a set, the same ones each time.",
)
@click.option("--split", default="test", show_default=True, metavar="S", help="Judgements of qrels/S.tsv.")
@click.option(
    "--skip-adversarial/--adversarial", default=True, show_default=True, help="Leave out misleading questions."
)
@click.option("--category", default="", metavar="FIELD", help="Field of the questions to split the tables by.")
@click.option("--budgets", default="", metavar="N,N", help="Token budgets for sets with excerpts.")
@click.option("--worst", type=click.IntRange(0), default=0, metavar="N", help="Number of the worst answers to explain.")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Setting of `mindex config` for this run (repeatable).",
)
@click.option(
    "--sweep", "swept", multiple=True, metavar="KEY=A,B,C", help="Compare several values of a setting (repeatable)."
)
@click.option(
    "--compare", type=click.Path(path_type=Path), metavar="OTHER.json", help="Earlier run to compare with (--json)."
)
@click.option("--metric", type=click.Choice(METRICS), help=f"Metric of --sweep and --compare (default: {NDCG}).")
@click.option("--silence", is_flag=True, help="Ask each set's questions about the other sets' texts.")
@click.option("--together", is_flag=True, help="Measure all sets in one database (with --silence: all other sets).")
@click.option(
    "--keep", type=click.Path(path_type=Path), metavar="DIR", help="Keep the filled databases in this folder."
)
@click.option("--truth", is_flag=True, help="Measure updates, conflicts and times, and the sets' knowledge updates.")
@click.option("--on", default="", metavar="URL", help="PostgreSQL database to measure on, in a temporary schema.")
@click.pass_obj
def eval_command(
    context: Context,
    /,
    folders: tuple[Path, ...],
    modes: str,
    budgets: str,
    skip_adversarial: bool,
    settings: tuple[str, ...],
    swept: tuple[str, ...],
    compare: Path | None,
    metric: str | None,
    silence: bool,
    together: bool,
    truth: bool,
    **options: Any,  # passed on to `EvaluationOptions`
) -> None:
    """Measure search quality, on sets of questions whose answers are known.

    SET is a folder with queries.jsonl, qrels/test.tsv and corpus.jsonl or files/ (the layout of BEIR), or a folder of
    your notes with a questions.yaml: a list of `question` and `answer` (a path, or several), or `none: true`.
    SET:memory stores all its texts as memories, SET@GROUP uses one group of it.

    --truth measures how mindex handles updates, conflicts and times in questions, with its own sentences.

    One table shows the ranking. Another shows the results as users get them, and the same results without a floor.
    Further tables show both by session and by category, if the set has these. For questions with `excerpts`, a table
    shows the share of the excerpts that an answer contains.
    """
    folders = _distinct(folders)
    evaluation = EvaluationOptions(
        variants=tuple(_comma_separated(modes)),
        settings=dict(map(_key_value, settings)),
        adversarial=not skip_adversarial,
        shapes=_shapes(),
        budgets=_budgets(budgets),
        **options,
    )
    _check_options(
        folders, options | {"compare": compare, "modes": modes, "metric": metric}, silence, bool(swept), together, truth
    )
    result: Printable
    text: Callable[[], str]
    with closing(open_cache()) as cache, ProgressBar() as bar:
        if truth:
            measured = measure_truth(folders, evaluation.settings, cache, bar)
            result, text = to_json(measured), lambda: truth_text(measured)
        elif together and silence:
            left_out = leave_one_out(folders, evaluation, cache, variant=_single_variant(evaluation), report=bar)
            result, text = left_out, lambda: left_out_text(left_out)
        elif together:
            mixed = mixture(folders, evaluation, cache, variant=_single_variant(evaluation), report=bar)
            result, text = mixed, lambda: mixture_text(mixed)
        elif silence:
            topics = foreign_topics(folders, evaluation, cache, variant=_single_variant(evaluation), report=bar)
            result, text = topics, lambda: silence_text(topics)
        elif swept:
            values = {key: _comma_separated(value) for key, value in map(_key_value, swept)}
            variant = _single_variant(evaluation)
            sweeps = sweep(folders, values, evaluation, cache, variant=variant, metric=metric or NDCG, report=bar)
            result, text = {"sweeps": sweeps}, lambda: sweeps_text(sweeps)
        else:
            earlier = read_earlier(compare) if compare is not None else None
            found = [assess(folder, evaluation, cache, bar) for folder in folders]
            if earlier is not None:
                found = [compared(one, earlier, metric or NDCG) for one in found]
            result, text = assessments_json(found), lambda: assessments_text(found)
    context.emit(result, text)


def _check_options(
    folders: Sequence[Path], options: Mapping[str, Any], silence: bool, swept: bool, together: bool, truth: bool
) -> None:
    """Raise UsageError for options that cannot be combined."""
    if not folders and not truth:
        raise UsageError("no set is named", "pass a folder with queries.jsonl or questions.yaml, or --truth")
    if truth and (silence or swept or together or any(options[name] for name in _NOT_WITH_TRUTH)):
        raise UsageError("--truth prints separate tables", "leave the options but --set out")
    tables = silence or swept or together
    if tables and (options["compare"] or options["worst"] or options["category"] or (options["keep"] and not together)):
        raise UsageError("--silence, --together and --sweep print separate tables", "leave the other options out")
    if options["on"] and (silence or swept or options["keep"]):
        raise UsageError("--on measures sets, alone or --together", "leave --silence, --sweep and --keep out")
    if options["metric"] and not (swept or options["compare"]):
        raise UsageError("--metric needs --sweep or --compare", "pass one of them")
    if (silence or together) and swept:
        other = "--together" if together else "--silence"
        raise UsageError(f"{other} cannot be combined with --sweep", "run the command twice")
    if silence and options["keep"]:
        raise UsageError("--silence cannot be combined with --keep", "remove --keep")
    if silence and len(folders) < 2:
        raise UsageError("--silence needs questions of other sets", "pass at least two sets")


def _shapes() -> dict[str, AnswerShape]:
    """How the command line and the tool of MCP show an answer, and the tool with more hits."""
    from mindex.mcp.native.retrieval import SearchTools  # no other command of the CLI needs the tools

    given = {name: one.default for name, one in signature(SearchTools.search).parameters.items()}
    tool = AnswerShape(given["view"], given["limit"], given["budget"])
    return {"CLI": AnswerShape(), "MCP": tool, f"MCP, {_MORE_HITS} hits": replace(tool, limit=_MORE_HITS)}


def _budgets(text: str) -> tuple[int, ...]:
    """Return the token budgets to measure. Raises UsageError for one that is not a number or too small."""
    try:
        budgets = tuple(map(int, _comma_separated(text))) or BUDGETS
    except ValueError:
        raise UsageError(f"--budgets {text} is not a list of numbers", "write, for example, 100,500") from None
    check_budget(min(budgets))
    return budgets


def _distinct(folders: Sequence[Path]) -> tuple[Path, ...]:
    """Return the folders, each once. Raises UsageError if two of them have one name."""
    distinct = tuple(dict.fromkeys(folder.resolve() for folder in folders))
    names = [parse_set_name(folder).label for folder in distinct]
    for name in names:
        if names.count(name) > 1:
            raise UsageError(f"two of these sets are called '{name}'", "rename one of the folders")
    return distinct


def _single_variant(options: EvaluationOptions) -> str:
    """Return the one variant that separate tables measure. Raises UsageError for several --modes."""
    if len(options.variants) > 1:
        raise UsageError("--sweep, --silence and --together look at one mode", "name one with --modes")
    variant = next(iter(options.variants), "hybrid") + "+expand" * options.expand + "+rerank" * options.rerank
    return variants_of(replace(options, variants=(variant,), rerank=False, expand=False))[0]


def _comma_separated(text: str) -> list[str]:
    return [part.strip() for part in text.split(",") if part.strip()]


def _key_value(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key.strip():
        raise UsageError(f"'{text}' is not KEY=VALUE", "write, for example, search.weights.blend=0.4")
    return key.strip(), value.strip()

"""The commands reembed and models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click

from mindex.cli.output import prints
from mindex.cli.progress_bar import ProgressBar
from mindex.memory import Memory
from mindex.model.reports import ListedModel, ReembedReport
from mindex.present.models import models_text, reembed_text


@click.command("reembed")
@click.option(
    "--provider", default="", metavar="P", help="Whose model: local, ollama, lmstudio, openai, azure, cloudflare …"
)
@click.option(
    "--model", default="", metavar="X", help="Its name, folder or file; `mindex models` lists what is ready-made."
)
@click.option("--url", default="", metavar="U", help="Where its server is.")
@click.option("--dimensions", metavar="N", type=click.IntRange(min=0), help="Shorten its vectors to N; 0: do not.")
@click.option("--force", is_flag=True, help="Embed everything again, also with the model that is used already.")
@click.option("--dry-run", is_flag=True, help="Only say how much there is to do, and roughly how long it takes.")
@prints(reembed_text)
def reembed_command(memory: Memory, **options: Any) -> ReembedReport:
    """Change the model that this memory is embedded with.

    Without options an unfinished change is resumed, else a model or provider that the settings name is changed to.
    Where they name none (`mindex models` says `default` then), nothing changes. The old vectors serve until the new
    ones are complete; servers that are running follow by themselves. Stop it at any time: the next run goes on from
    there. With --force the old vectors are not believed: a server may have been given another model under the same
    name.
    """
    with ProgressBar() as bar:
        return memory.models.reembed(**options, report=bar)


@click.command("models")
@click.option("--measure", is_flag=True, help="Have each installed model work for a moment, and say how fast it is.")
@prints(models_text, lambda listed: {"models": listed})
def models_command(memory: Memory, measure: bool) -> Sequence[ListedModel]:
    """List ready-made models, what is configured, and what this memory is embedded with."""
    return memory.models.list(measure=measure, report=lambda name: click.echo(f"measuring {name}", err=True))

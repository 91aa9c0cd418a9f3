"""The commands reembed and models."""

from __future__ import annotations

from typing import Any

import click

from mindex.cli.output import Context
from mindex.cli.progress_bar import ProgressBar
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
@click.pass_obj
def reembed_command(context: Context, /, **options: Any) -> None:
    """Change the model that this memory is embedded with.

    Without options an unfinished change is resumed, else a model or provider that the settings name is changed to.
    Where they name none (`mindex models` says `default` then), nothing changes. The old vectors serve until the new
    ones are complete; servers that are running follow by themselves. Stop it at any time: the next run goes on from
    there. With --force the old vectors are not believed: a server may have been given another model under the same
    name.
    """
    with context.memory() as memory, ProgressBar() as bar:
        done = memory.models.reembed(**options, report=bar)
    context.emit(done, lambda: reembed_text(done))


@click.command("models")
@click.option("--measure", is_flag=True, help="Have each installed model work for a moment, and say how fast it is.")
@click.pass_obj
def models_command(context: Context, measure: bool) -> None:
    """List ready-made models, what is configured, and what this memory is embedded with."""
    with context.memory() as memory:
        listed = memory.models.list(measure=measure, report=lambda name: click.echo(f"measuring {name}", err=True))
    context.emit({"models": listed}, lambda: models_text(listed))

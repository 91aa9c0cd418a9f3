"""Renders the templates. Every value is escaped, unless `markup` made it of escaped parts."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from mindex import __version__
from mindex.clock import to_iso
from mindex.datatypes import KINDS, TYPES
from mindex.present.record_view import field_text, summary_of
from mindex.present.text import amount
from mindex.web.markup import markdown, marked, text_difference, without_blank_lines
from mindex.web.paths import file_path, record_path

_FOLDER = Path(__file__).parent
STATIC = _FOLDER / "static"


def render(template: str, values: Mapping[str, Any]) -> str:
    return _environment().get_template(template).render(values)


@cache
def _environment() -> Environment:
    made = Environment(
        loader=FileSystemLoader(_FOLDER / "templates"),
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        undefined=StrictUndefined,
    )
    made.globals |= {
        "version": __version__,
        "static": static_address,
        "kinds": KINDS,
        "types": TYPES,
        "record_path": record_path,
        "file_path": file_path,
        "text_difference": text_difference,
    }
    made.filters |= {
        "time": short_time,
        "iso": to_iso,
        "amount": amount,
        "summary": summary_of,
        "field_text": field_text,
        "marked": marked,
        "without_blank_lines": without_blank_lines,
        "markdown": markdown,
    }
    return made


def short_time(moment: int | str | None) -> str:
    """`2026-03-01 14:05`, in UTC, of milliseconds or an ISO text; '' for none."""
    if not moment:
        return ""
    text = moment if isinstance(moment, str) else to_iso(moment)
    return text[:16].replace("T", " ")


@cache
def static_address(name: str) -> str:
    """The address of a file of the page; it changes with the file, so that browsers may keep it for ever."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:12]
    return f"/static/{name}?v={digest}"

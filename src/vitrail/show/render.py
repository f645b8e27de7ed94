"""The renderer: every page and every notebook fragment is a template in ``templates``, and what it is given is escaped."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import InvalidInput
from .style import MARK, figure_address

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.globals |= {"address": figure_address, "MARK": MARK}
    return environment


def render(template: str, **given: object) -> str:
    """The text of a template with what it is given. Autoescape is on for every text that is not from a template."""
    return _environment().get_template(template).render(given)


def write_page(html: str, path: str | Path) -> Path:
    """Write a page as one file; returns where."""
    target = Path(path)
    try:
        target.write_text(html, encoding="utf-8")
    except OSError as error:
        raise InvalidInput(f"the page cannot be written to {str(path)!r}: {error.strerror}") from error
    return target

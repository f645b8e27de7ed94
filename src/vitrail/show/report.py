"""A report: a privacy label, then sections of text, tables and pictures, as one HTML file that stands alone."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..errors import InvalidInput
from .images import figure_image
from .label import PrivacyLabel
from .page import html_text, page, table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True, slots=True)
class Table:
    """Texts in rows under a header; ``numeric`` names the places of columns set to the right."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    numeric: tuple[int, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.header):
                raise InvalidInput(f"a row of the table has {len(row)} cells; its header has {len(self.header)}")

    def to_html(self) -> str:
        """The table as HTML, escaped."""
        return table(self.header, self.rows, self.numeric)


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure, what it shows in words, and its numbers folded away underneath."""

    figure: Figure
    description: str
    numbers: Table | None = None
    title: str = ""

    def to_html(self) -> str:
        """The picture as HTML, the image inside."""
        title = f"<figcaption>{html_text(self.title)}</figcaption>" if self.title else ""
        numbers = ""
        if self.numbers is not None:
            numbers = f"<details><summary>numbers</summary>{self.numbers.to_html()}</details>"
        return f"<figure>{title}{figure_image(self.figure, self.description)}{numbers}</figure>"


@dataclass(frozen=True, slots=True)
class Section:
    """A part of a report: paragraphs, then tables, then pictures."""

    title: str
    paragraphs: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()
    pictures: tuple[Picture, ...] = ()

    def to_html(self) -> str:
        """The section as HTML, escaped."""
        parts = [f"<h2>{html_text(self.title)}</h2>"]
        parts += [f"<p>{html_text(text)}</p>" for text in self.paragraphs]
        parts += [one.to_html() for one in self.tables]
        if self.pictures:
            wide = " wide" if len(self.pictures) == 1 else ""
            parts.append(f'<div class="pictures{wide}">' + "\n".join(one.to_html() for one in self.pictures) + "</div>")
        return "<section>\n" + "\n".join(parts) + "\n</section>"


class PagePart(Protocol):
    """What a report is made of: a :class:`Section`, or anything else that can write itself as escaped HTML."""

    def to_html(self) -> str:
        """The part as HTML, escaped."""
        ...


@dataclass(frozen=True)
class Report:
    """A report on something that was released, with its privacy label at the top.

    Parameters
    ----------
    title : str
        What it is about.
    label : PrivacyLabel
        What is promised, and what is not.
    sections : tuple of Section
        What was found.
    footer : str
        The last line.
    label_last : bool
        Whether the privacy label stands after the sections: on a page for somebody who first of all wants an answer.

    Examples
    --------
    >>> from vitrail.guarantee import Guarantee
    >>> from vitrail.show import privacy_label
    >>> label = privacy_label(Guarantee.of_mu(0.2, 1e-6), dataset="adult")
    >>> report = Report("Incomes", label, (Section("Findings", ("Nothing <unusual>.",)),))
    >>> "<p>Nothing &lt;unusual&gt;.</p>" in report.to_html()
    True
    """

    title: str
    label: PrivacyLabel
    sections: tuple[PagePart, ...]
    footer: str = field(
        default="Made with Vitrail. This file holds releases only: no rows, no scripts, nothing loaded from elsewhere."
    )
    label_last: bool = False

    def to_html(self) -> str:
        """The whole page."""
        sections = [section.to_html() for section in self.sections]
        label = self.label.to_html()
        parts = [f"<h1>{html_text(self.title)}</h1>", *([*sections, label] if self.label_last else [label, *sections])]
        parts.append(f"<footer>{html_text(self.footer)}</footer>")
        return page(self.title, "\n".join(parts))

    def save(self, path: str | Path) -> Path:
        """Write the page as one HTML file; returns where."""
        target = Path(path)
        try:
            target.write_text(self.to_html(), encoding="utf-8")
        except OSError as error:
            raise InvalidInput(f"the report cannot be written to {str(path)!r}: {error.strerror}") from error
        return target

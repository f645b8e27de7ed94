"""What a doctor says: findings in sentences, the gravest first. Exact, and therefore private."""

from __future__ import annotations

import html
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from ..accounting import JsonValue
from ..errors import InvalidInput
from ..results.archive import write_bytes

Gravity: TypeAlias = Literal["stop", "care", "note"]
GRAVITIES: tuple[Gravity, ...] = ("stop", "care", "note")
WORDS: Mapping[Gravity, str] = {"stop": "Mend this", "care": "Look at this", "note": "Good to know"}
PRIVATE = (
    "PRIVATE: what follows was read off the rows, exactly, for their owner alone. No budget paid for it and no "
    "promise covers "
    "it: do not send, log or publish it. Nothing was charged."
)
ENDINGS = (".txt", ".json", ".html")


@dataclass(frozen=True)
class Finding:
    """One thing that was found.

    Attributes
    ----------
    gravity : {"stop", "care", "note"}
        Whether answers would be wrong, worse than they could be, or neither.
    where : str
        A column, ``"rows"`` or ``"model"``.
    text : str
        What was found, and what to do about it.
    """

    gravity: Gravity
    where: str
    text: str


@dataclass(frozen=True)
class Checkup:
    """What does not fit between rows, declaration and model. It holds exact facts about private rows: keep it to yourself.

    Attributes
    ----------
    dataset : str
        Its name.
    findings : tuple of Finding
        The gravest first.
    summary : tuple of str
        What was looked at, in sentences.
    release_seconds : float or None
        About how long a pane of the model takes here; None without a model.

    Examples
    --------
    >>> import tempfile, vitrail as vt
    >>> rows = {"age": [40.0, None, 300.0, 51.0], "smoker": ["yes", "no", "ja", "no"]}
    >>> schema = vt.Schema({"age": vt.Numeric(0, 120), "smoker": vt.Categorical(["no", "yes"])})
    >>> data = vt.PrivateData(rows, schema, name="visits", n_rows_public=4, budget=vt.Budget(1, 1e-6), ledger="memory")
    >>> checkup = vt.doctor(data, rows=rows)
    >>> checkup.ok, [finding.where for finding in checkup.findings][:2]
    (False, ['rows', 'age'])
    """

    dataset: str
    findings: tuple[Finding, ...]
    summary: tuple[str, ...]
    release_seconds: float | None = None

    @property
    def ok(self) -> bool:
        """Whether nothing was found that has to be mended or looked at."""
        return all(finding.gravity == "note" for finding in self.findings)

    def __str__(self) -> str:
        lines = [PRIVATE, "", *self.summary]
        for gravity in GRAVITIES:
            found = [finding for finding in self.findings if finding.gravity == gravity]
            lines += ["", f"{WORDS[gravity]}:"] if found else []
            lines += [f"  {finding.where}: {finding.text}" for finding in found]
        return "\n".join(
            [*lines, "", "Nothing stands in the way of a release." if self.ok else "Then run the doctor again."]
        )

    def __repr__(self) -> str:
        counts = ", ".join(f"{sum(one.gravity == gravity for one in self.findings)} {gravity}" for gravity in GRAVITIES)
        return f"Checkup({self.dataset!r}: {counts}; print it to read it)"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{WORDS[one.gravity]}</td><td>{html.escape(one.where)}</td><td>{html.escape(one.text)}</td></tr>"
            for one in self.findings
        )
        said = "".join(f"<p>{html.escape(text)}</p>" for text in (PRIVATE, *self.summary))
        return f"{said}<table>{rows}</table>"

    def to_json(self) -> dict[str, JsonValue]:
        """The findings as plain JSON values: as private as the checkup."""
        return {
            "private": PRIVATE,
            "dataset": self.dataset,
            "ok": self.ok,
            "summary": list(self.summary),
            "release_seconds": self.release_seconds,
            "findings": [{"gravity": one.gravity, "where": one.where, "text": one.text} for one in self.findings],
        }

    def save(self, path: str | Path) -> None:
        """Write it to a file that nobody else can read, as .txt, .json or .html by its name."""
        file = Path(path)
        makers = {
            ".txt": lambda: str(self) + "\n",
            ".json": lambda: json.dumps(self.to_json(), indent=2) + "\n",
            ".html": lambda: (
                f'<!doctype html><meta charset="utf-8"><title>PRIVATE: {html.escape(self.dataset)}</title>'
                f"{self._repr_html_()}\n"
            ),
        }
        if file.suffix.lower() not in makers:
            raise InvalidInput(f"the checkup's file is {str(file)!r}; its name must end in {', '.join(ENDINGS)}")
        try:
            file.touch(mode=0o600)
            file.chmod(0o600)  # also of a file that was there
        except OSError as error:
            raise InvalidInput(f"{str(file)!r} cannot be written: {error.strerror}") from error
        write_bytes(file, makers[file.suffix.lower()]().encode())

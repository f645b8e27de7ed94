"""What all results share: promise, price, notes, bands, and the same five things to do with them.

Results reach ``show`` by the one door below, opened when something is first drawn, so that reading a result draws nothing.
No other module of this room imports ``show``.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from .._types import Floats
from ..accounting import Cost, JsonValue
from ..accounting.guarantee import Bill, Guarantee
from ..errors import DamagedFile, InvalidInput
from . import archive, codec
from .band_claim import TWO_SIDED_95, BandClaim
from .checks import checked_texts, frozen_numbers
from .row_count import RowCount
from .verdict import Judgement, Verdict

if TYPE_CHECKING:
    from .. import show as show
else:

    class _Door:
        def __getattr__(self, name: str) -> object:
            return getattr(import_module("vitrail.show"), name)

    show = _Door()

Frame: TypeAlias = dict[str, NDArray[np.generic]]
_FOLDER = "result"


class Drawn:
    """What every result can do with ``show``: a page, and what a notebook shows."""

    if TYPE_CHECKING:

        @property
        def guarantee(self) -> Guarantee:
            """The promise; every result has one."""
            ...

    def to_html(self, path: str | Path | None = None, bill: Bill | None = None, *, title: str | None = None) -> str:
        """One page that stands alone; written to ``path`` if one is given.

        Parameters
        ----------
        path : str or Path, optional
            Where to write it.
        bill : Bill, optional
            ``data.budget.bill()``: the label then states the promise for all that the account has released.
        title : str, optional
            What stands on top.
        """
        html = show.page(self, bill=bill, title=title)
        if path is not None:
            show.write_page(html, path)
        return html

    def _repr_html_(self) -> str:
        return show.fragment(self)


class Stored:
    """What a file can hold: a frozen dataclass of released numbers and public facts.

    Subclasses name their format, ``class Curve(Result, stored_as="curve/1")``, and declare their fields; how these are
    written and checked follows from their types (``results.codec``). A ``check_read`` is called after reading: it refuses
    what the constructor accepts and a stranger's file should not hold. Two are equal when their files are.
    """

    FORMAT: ClassVar[str]

    def __init_subclass__(cls, stored_as: str = "", **options: object) -> None:
        super().__init_subclass__(**options)
        if stored_as:
            cls.FORMAT = f"vitrail-{stored_as}"

    def to_bytes(self) -> bytes:
        """The file, as ``save`` writes it; the same result gives the same bytes."""
        files = {f"{_FOLDER}/{name}": content for name, content in codec.to_files(self).items()}
        listed: JsonValue = {name: archive.digest(files[name]) for name in sorted(files)}
        return archive.pack({"format": self.FORMAT, "files": listed}, files)

    @classmethod
    def from_bytes(cls, content: bytes, *, what: str = "the file") -> Self:
        """Read back what ``to_bytes`` made. Nothing in it is run; whatever is wrong with it is an ``InvalidInput``."""
        if content[:1] == b"{":  # JSON text, as ``write_json`` and the commands write it
            return cls.from_json(archive.parsed_json(content, what), what=what)
        manifest, files = archive.unpack(content, what)
        archive.check_format(manifest, cls.FORMAT, what)
        listed = manifest.get("files")
        if set(manifest) != {"format", "files"} or not isinstance(listed, dict):
            raise DamagedFile(f"the manifest of {what} must name its format and its files, and nothing else")
        archive.check_files(listed, files, what)
        return cls.from_files({name.removeprefix(f"{_FOLDER}/"): files[name] for name in files}, what)

    @classmethod
    def from_files(cls, files: Mapping[str, bytes], what: str) -> Self:
        """Read the members of a file, or of one folder of a pane."""
        return codec.from_files(cls, files, what)

    def save(self, path: str | Path) -> Path:
        """Write a file that ``load`` reads back exactly; returns where."""
        return archive.write_bytes(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file that ``save`` or ``write_json`` wrote. It holds numbers and texts; nothing in it is run."""
        return cls.from_bytes(archive.read_bytes(path), what=repr(str(path)))

    def to_json(self) -> dict[str, JsonValue]:
        """Plain JSON values for other programs, arrays as lists; every number comes back exactly."""
        return {"format": self.FORMAT, **codec.to_json(self)}

    @classmethod
    def from_json(cls, fields: JsonValue | Mapping[str, JsonValue], *, what: str = "what was given") -> Self:
        """Read back what ``to_json`` wrote."""
        if not isinstance(fields, Mapping):
            raise DamagedFile(f"{what} is {type(fields).__name__} and no {cls.__name__} as its to_json writes it")
        archive.check_format(fields, cls.FORMAT, what)
        return codec.from_json(cls, {name: fields[name] for name in fields if name != "format"}, what)

    def write_json(self, path: str | Path) -> Path:
        """Write ``to_json`` as text, for other programs; returns where."""
        return archive.write_bytes(path, archive.json_bytes(self.to_json()))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return codec.to_files(self) == codec.to_files(other)

    def __hash__(self) -> int:
        return hash((self.FORMAT, codec.to_files(self)[codec.FIELDS]))

    def _check_fields(self, what: str) -> None:
        """Refuse a field that is declared as a text, promise, price or claim and is something else; notes are texts."""
        kinds = codec.stored_fields(type(self))
        for name, kind in kinds.items():
            if kind in (str, Guarantee, Cost, BandClaim) and not isinstance(given := getattr(self, name), kind):
                raise InvalidInput(f"{name} of {what} is {type(given).__name__}; it must be a {kind.__name__}")
        if "notes" in kinds:
            self._fix(notes=checked_texts(getattr(self, "notes"), "notes"))  # noqa: B009 - not every class has the field

    def _fix(self, **checked: object) -> None:
        """Put checked values in place of what the constructor was given."""
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def _freeze(self, shape: tuple[int, ...], *names: str) -> None:
        """Put read-only copies in place of fields of numbers, all of one shape; one that may be None and is stays so."""
        for name in names:
            if (given := getattr(self, name)) is not None or not hasattr(type(self), name):
                self._fix(**{name: frozen_numbers(given, shape, name)})


class Result(Stored, Drawn, ABC):
    """What a person gets. Frozen; may be stored, published and drawn without limit.

    Attributes
    ----------
    guarantee : Guarantee
        The promise for all of it, and for everything released before that it rests on.
    cost : Cost
        The price of the questions that were asked for it.
    """

    guarantee: Guarantee
    cost: Cost

    @property
    def rows_counted(self) -> RowCount | None:
        """How many rows count, where what was released for it says so."""
        return None

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences a reader should know."""
        return ()

    @abstractmethod
    def frame(self) -> Frame:
        """The numbers as columns of one length, which any data frame library takes: ``pandas.DataFrame(x.frame())``."""

    def to_interpret(self) -> Any:
        """As interpret's ``show`` takes it: ``data(key)``, ``visualize(key)``; an error where it has no such thing."""
        return show.interpret_explanation(self)

    @property
    def band_sentences(self) -> tuple[str, ...]:
        """What the bands claim, where there are any."""
        return ()

    def _judge(self) -> Judgement | None:
        """What the one rule (``results.verdict``) says of what is shown; None without bands."""
        return None

    @cached_property
    def _judgement(self) -> Judgement | None:
        return self._judge()

    @property
    def signal(self) -> float | None:
        """How many times larger than its noise what is shown is; infinite without noise, None without bands."""
        return None if self._judgement is None else self._judgement.signal

    @property
    def verdict(self) -> Verdict | None:
        """Whether it stands out of its noise, by the one rule of ``results.verdict``; None without bands."""
        return None if self._judgement is None else self._judgement.verdict

    @property
    def verdict_sentences(self) -> tuple[str, ...]:
        """The verdict in words, and what would help; nothing where it is clear and there is nothing to name."""
        return ()

    @property
    def read_first(self) -> tuple[str, ...]:
        """What stands above every picture and text: rows that contradict the declared count, a verdict that is not clear."""
        counted = () if self.rows_counted is None or not self.rows_counted.contradicts else (self.rows_counted.sentence,)
        return (*counted, *(() if self.verdict in (None, Verdict.CLEAR) else self.verdict_sentences))

    @property
    def sentences(self) -> tuple[str, ...]:
        """What a reader should know: the promise, rows that count, the verdict, what the bands claim, the notes."""
        counted = () if self.rows_counted is None else (self.rows_counted.sentence,)
        return (self.guarantee.sentence, *counted, *self.verdict_sentences, *self.band_sentences, *self.notes)

    @property
    def read_below(self) -> tuple[str, ...]:
        """The sentences that do not stand above."""
        return tuple(sentence for sentence in self.sentences if sentence not in self.read_first)


class Banded(Result):
    """A result of numbers that may have noise bands; the class says which field they are, ``of="scores"``.

    Attributes
    ----------
    lower, upper : array, or None
        Ends of the bands, for each number on its own: fields, or from ``std``.
    std : array, or None
        Standard deviation of the noise on each number.
    notes : tuple of str
        Sentences a reader should know.
    band_claim : BandClaim
        How often the bands hold; ``NOT_CALIBRATED`` if not given.
    """

    OF: ClassVar[str]
    band_claim: BandClaim
    std: Floats | None = None

    def __init_subclass__(cls, of: str = "", **options: object) -> None:
        super().__init_subclass__(**options)  # type: ignore[arg-type]
        cls.OF = of

    def _check_bands(self, what: str) -> None:
        if (self.lower is None) != (self.upper is None):
            raise InvalidInput(f"{what} was given one end of its bands only; give both lower and upper, or neither")
        if self.std is not None and (self.std < 0).any():
            raise InvalidInput(f"std of {what} holds a negative number; standard deviations are at least 0")

    def _end(self, deviations: float) -> Floats | None:
        with np.errstate(over="ignore"):  # a file may hold any number
            return None if self.std is None else np.asarray(getattr(self, self.OF) + deviations * self.std)

    @property
    def lower(self) -> Floats | None:
        """Lower ends of the noise bands; None without bands."""
        return self._end(-TWO_SIDED_95)

    @property
    def upper(self) -> Floats | None:
        """Upper ends of the noise bands; None without bands."""
        return self._end(TWO_SIDED_95)

    @property
    def half_width(self) -> float | None:
        """The median half-width of the bands; None without bands."""
        lower, upper = self.lower, self.upper
        return None if lower is None or upper is None else float(np.median(upper - lower) / 2)

    @property
    def band_sentences(self) -> tuple[str, ...]:
        """What the bands claim, where there are any."""
        return () if self.lower is None else (self.band_claim.sentence(),)

    @property
    def _brief(self) -> str:
        """The last words of its ``repr``: the promise, what the bands claim, and whether it is mostly noise."""
        bands = "" if self.lower is None else f", {self.band_claim.brief}"
        return self.guarantee.brief + bands + (f", {self.verdict}" if self.verdict is Verdict.MOSTLY_NOISE else "")

    def _column(self, name: str) -> Floats:
        """A field of numbers as a column of a frame; NaN where there are none."""
        numbers: Floats | None = getattr(self, name)
        return np.full(getattr(self, self.OF).size, np.nan) if numbers is None else numbers.ravel().copy()


def counted(number: int, noun: str) -> str:
    """So many of them.

    Examples
    --------
    >>> counted(1, "point"), counted(3, "level")
    ('1 point', '3 levels')
    """
    return f"{number} {noun}" + ("" if number == 1 else "s")

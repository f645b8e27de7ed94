"""How an account of a service stands, and what a question would cost there: what local data says, from JSON.

Both have the face that local data's have, as far as a service tells it: a statement with epsilons instead of the ledger's
integers, whose bill is read when somebody asks for it; and a quote without the stand-in's result, which stays where it was
made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .._checks import whole
from .._tables import html_table, text_table
from ..accounting import Cost, JsonValue, epsilon_of, mu_of, rounded_down, rounded_up
from ..accounting.guarantee import BILL_HEADER, Bill, BillLine, Budget, Guarantee
from ..accounting.neighbours import Neighbours, check_neighbours
from ..errors import DamagedFile, LedgerError
from ..explain.quoted import Quoted
from ..ledger.statement import SHOWN_LINES
from ..results.band_claim import BandClaim
from ..results.verdict import Verdict
from ..vault import Quote

LinesReader = Callable[[int], list[dict[str, Any]]]
"""Reads the newest lines of a bill."""
MOST_LINES = 1000
"""Of a bill, at once: more are not sent."""


@dataclass(frozen=True, slots=True)
class RemoteLine:
    """What one analyst has spent and may, at a service; ``remaining_epsilon`` is the largest question that still fits."""

    analyst: str
    spent_epsilon: float
    cap: Budget | None
    remaining_epsilon: float


@dataclass(frozen=True, slots=True)
class RemoteReservation:
    """A price that is set aside for a question at work, or for one that died."""

    analyst: str
    label: str
    reserved_epsilon: float
    booked_epsilon: float


@dataclass(frozen=True, slots=True)
class RemoteBill(Bill):
    """The lines of a bill that a service shows to whoever asks: an analyst sees their own."""

    @property
    def omission(self) -> str:
        """Which lines are not here, in a sentence; empty where all are."""
        if self.n_earlier is None:
            return ""
        others = f"{self.n_earlier} question{'s are' if self.n_earlier != 1 else ' is'}"
        return f"{others} not among these lines: other people's, or older."


@dataclass(frozen=True)
class RemoteStatement:
    """The state of an account that a service keeps, as it was when it was asked.

    Lines of analysts, reservations and the bill are those that the service shows: to an analyst their own line.

    Attributes
    ----------
    account : str
        The account's name.
    budget : Budget
        The most it may ever spend.
    delta : float
        At which the epsilons of questions are stated.
    spent_epsilon, remaining_epsilon : float
        Of all questions together, rounded up; and the largest single question that still fits, rounded down.
    n_questions : int
        How many questions were paid for.
    analysts : tuple of RemoteLine
    reservations : tuple of RemoteReservation
    """

    account: str
    budget: Budget
    neighbours: Neighbours
    delta: float
    spent_epsilon: float
    remaining_epsilon: float
    n_questions: int
    analysts: tuple[RemoteLine, ...]
    reservations: tuple[RemoteReservation, ...]
    head: str = field(repr=False)
    fields: Mapping[str, JsonValue] = field(repr=False, compare=False)
    lines: LinesReader = field(repr=False, compare=False)

    def of_analyst(self, analyst: str) -> RemoteLine:
        """One analyst's line."""
        for line in self.analysts:
            if line.analyst == analyst:
                return line
        known = ", ".join(repr(line.analyst) for line in self.analysts) or "nobody"
        raise LedgerError(f"Analyst {analyst!r} has no line in account {self.account!r} that you may see; it shows {known}.")

    def bill(self, newest: int | None = None) -> Bill:
        """What was paid for, line by line, as far as you may see it; ``vitrail.show.page`` makes a page of it.

        Parameters
        ----------
        newest : int, optional
            So many lines from the end; as many as the service shows at once if not given.
        """
        wanted = MOST_LINES if newest is None else whole("newest", newest, least=0, most=MOST_LINES)
        told = tuple(_bill_line(line) for line in self.lines(wanted)) if wanted else ()
        paid = sum(line.paid for line in told)
        spent, delta = self.spent_epsilon, self.budget.delta
        promise = Guarantee(spent, delta, mu_of(spent, self.delta) if spent else 0.0, self.neighbours)
        stands = self.account, self.budget.epsilon, delta, spent, self.remaining_epsilon, promise, self.head, told
        return RemoteBill(*stands, None if paid == self.n_questions else self.n_questions - paid)

    def __str__(self) -> str:
        return text_table(BILL_HEADER, *self._printed())

    def _repr_html_(self) -> str:
        return html_table(BILL_HEADER, *self._printed())

    def _printed(self) -> tuple[tuple[tuple[str, ...], ...], list[str]]:
        bill = self.bill(newest=SHOWN_LINES)
        said = [f"Account {self.account!r}, neighbours {self.neighbours}: {bill.sentence}"]
        for line in self.analysts:
            if line.cap is not None:
                largest = rounded_down(line.remaining_epsilon)
                said.append(f"Analyst {line.analyst!r} has a cap: a question of up to ε = {largest} still fits it.")
        for held in self.reservations:
            set_aside, booked = rounded_up(held.reserved_epsilon), rounded_up(held.booked_epsilon)
            said.append(f"Set aside for {held.label!r}: ε = {set_aside}, of which ε = {booked} is booked.")
        return bill.cells, [*said, *([bill.omission] if bill.omission else [])]

    def price_tag(self, cost: Cost, sigma: float | None, n_rows_public: int, analyst: str) -> Quote:
        """What this cost would promise and add to the account, and whether account and cap can pay for it now."""
        own = [line.remaining_epsilon for line in self.analysts if line.analyst == analyst]
        remaining, epsilon = min([self.remaining_epsilon, *own]), epsilon_of(cost.mu, self.delta)
        promise = Guarantee.of_mu(cost.mu, self.delta, self.neighbours)
        per_row = None if sigma is None else sigma / n_rows_public
        return Quote(cost, promise, sigma, per_row, epsilon <= remaining, remaining, cost)

    def to_json(self) -> dict[str, JsonValue]:
        """The statement as the service wrote it."""
        return dict(self.fields)


def statement_of(fields: Mapping[str, Any], lines: LinesReader) -> RemoteStatement:
    """The statement that a service wrote as JSON."""
    try:
        budget = Budget(float(fields["budget_epsilon"]), float(fields["budget_delta"]))
        own = [] if fields.get("yours") is None else [fields["yours"]]
        return RemoteStatement(
            account=str(fields["account"]),
            budget=budget,
            neighbours=check_neighbours(str(fields["neighbours"])),
            delta=float(fields["delta"]),
            spent_epsilon=float(fields["spent_epsilon"]),
            remaining_epsilon=float(fields["remaining_epsilon"]),
            n_questions=int(fields["n_questions"]),
            analysts=tuple(_analyst_line(line, budget) for line in fields.get("analysts", own)),
            reservations=tuple(_reservation(line) for line in fields.get("reservations", ())),
            head=str(fields.get("head", "")),
            fields=dict(fields),
            lines=lines,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"the statement that the service sent cannot be read: {error}") from error


def _analyst_line(fields: Mapping[str, Any], budget: Budget) -> RemoteLine:
    cap = fields.get("cap_epsilon")
    limit = None if cap is None else Budget(float(cap), budget.delta)
    return RemoteLine(str(fields["analyst"]), float(fields["spent_epsilon"]), limit, float(fields["remaining_epsilon"]))


def _reservation(fields: Mapping[str, Any]) -> RemoteReservation:
    epsilons = float(fields["reserved_epsilon"]), float(fields["booked_epsilon"])
    return RemoteReservation(str(fields["analyst"]), str(fields["label"]), *epsilons)


def _bill_line(fields: Mapping[str, Any]) -> BillLine:
    try:
        return BillLine(
            int(fields["seq"]),
            str(fields["time_utc"]),
            str(fields["analyst"]),
            str(fields["what"]),
            bool(fields["paid"]),
            float(fields["epsilon"]),
            float(fields["so_far"]),
            float(fields["share"]),
            str(fields.get("part", "")),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise DamagedFile(f"a line of the bill that the service sent cannot be read: {error}") from error


@dataclass(frozen=True)
class RemoteQuote(Quoted[None]):
    """What an explainer would cost at a service, and how good it would be. It stands on what this analyst bought there.

    Of the same face as a quote of local data, but that ``result`` is None: what the stand-in answered stays at the service.
    """

    widths: Mapping[str, tuple[float, BandClaim | None]] = field(default_factory=dict)
    needs_approval: bool = False
    sentence: str = ""
    fields: Mapping[str, JsonValue] = field(default_factory=dict, repr=False)

    @property
    def half_widths(self) -> Mapping[str, tuple[float, BandClaim | None]]:
        """The median half-width of each part's bands and what they claim, by part; under no name for a single result."""
        return self.widths

    def __str__(self) -> str:
        approval = " The owner has to approve it first." if self.needs_approval else ""
        return (self.sentence or Quoted.__str__(self)) + approval

    def to_json(self) -> dict[str, JsonValue]:
        """The quote as the service wrote it."""
        return dict(self.fields)


def quote_of(fields: Mapping[str, Any]) -> RemoteQuote:
    """The quote that a service wrote as JSON."""
    try:
        half_width, claim, verdict = (fields.get(name) for name in ("half_width", "band_claim", "verdict"))
        widths: dict[str, tuple[float, BandClaim | None]]
        widths = {str(part): (float(width), None) for part, width in fields.get("half_widths", {}).items()}
        if not widths and half_width is not None:
            widths = {"": (float(half_width), None if claim is None else BandClaim(claim))}
        return RemoteQuote(
            price=_price_of(fields["price"]),
            result=None,
            stands_on=str(fields.get("stands_on", "the schema")),
            half_width=None if half_width is None else float(half_width),
            verdict=None if verdict is None else Verdict(verdict),
            widths=widths,
            needs_approval=fields.get("needs_approval") is True,
            sentence=str(fields.get("sentence", "")),
            fields=dict(fields),
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise DamagedFile(f"the quote that the service sent cannot be read: {error}") from error


def _price_of(fields: Mapping[str, Any]) -> Quote:
    return Quote(
        cost=Cost(int(fields["pico_mu_squared"])),
        guarantee=Guarantee.from_json(fields["guarantee"]),
        sigma=fields.get("sigma"),
        sigma_per_row=fields.get("sigma_per_row"),
        fits=bool(fields["fits"]),
        remaining_epsilon=float(fields["remaining_epsilon"]),
        adds=Cost(int(fields["added_pico_mu_squared"])),
        part=fields.get("part"),
    )

"""Commands that pay: one way from the options to the answer and its bill.

Everything public (schema, model, points, options, files to write) is tried on a *rehearsal* first: the same declarations
with no rows and a ledger that is forgotten. So a mistake costs nothing, and leaves no ledger behind.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from ..accounting import JsonValue, epsilon_of, rounded_down, rounded_up
from ..accounting.guarantee import question_mu
from ..errors import LedgerError, LedgerWarning, RowCountWarning
from ..results.base import Result
from .inputs import check_source, in_options, open_existing_ledger
from .printing import check_files, content_of, give, print_json, print_lines, print_note, show

if TYPE_CHECKING:
    from ..explain.quoted import Quoted
    from ..explain.recipe import GlobalExplainer
    from ..ledger import Statement
    from ..pane.pane import Pane
    from ..vault import PrivateData
    from .declarations import DataOptions, OutputOptions, PriceOptions

PAGE_LINES = 1000
"""Of the bill on a page: the newest."""
PACKAGE = Path(__file__).resolve().parents[1]
STILL_PAID = (
    ". It was paid for; the ledger keeps the releases of a model that is a file, and the same command again costs nothing"
)
"""What is said after a paid answer could not be written."""


B = TypeVar("B")
A = TypeVar("A", bound="Result | Pane")
T = TypeVar("T")


@dataclass(frozen=True)
class Order(Generic[B, A]):
    """What a command buys, and what it makes of it.

    Attributes
    ----------
    what : str
        The answer in words, for messages about files.
    explainer : callable
        Makes the explainer, for the rehearsal and for the private rows.
    answer : callable
        From what was bought to the answer: free. It is tried before anything is paid.
    model : str
        The model's name, for pages.
    writers : mapping
        Endings of files beside those of ``ENDINGS``, and what writes them.
    keep : callable, optional
        Given what was bought, as soon as it is.
    details : callable, optional
        What a quote prints beside price and bands.
    """

    what: str
    explainer: Callable[[PrivateData], GlobalExplainer[B]]
    answer: Callable[[B], A]
    model: str = "the model"
    writers: Mapping[str, Callable[[A, Path], object]] = field(default_factory=dict)
    keep: Callable[[B], None] | None = None
    details: Callable[[Quoted[B], GlobalExplainer[B]], None] | None = None


def fulfil(order: Order[B, A], data: DataOptions, price: PriceOptions, output: OutputOptions) -> None:
    """Quote an order, or rehearse it, pay for it and hand the answer out."""
    price.check(data.declared)
    check_files(output.files, order.what, tuple(order.writers))
    known = account_of(data)
    budget = data.total(price, known)
    rehearsal = data.nobody(budget)
    tried = with_notes(lambda: order.explainer(rehearsal))
    if price.only_quoted:
        fresh = rehearsal.budget
        if known is not None and (known.budget, known.neighbours) != (fresh.budget, fresh.neighbours):
            raise LedgerError(
                f"Account {known.account!r} has {known.budget} and neighbours {known.neighbours!r}; the options say "
                f"{fresh.budget} and {fresh.neighbours!r}. A budget never changes once it is set: give the account's own "
                "values."
            )
        print_quote(order, tried, data, price, known or fresh, as_json=output.as_json)
        return
    check_source(data.declared)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to warn of is said when it is paid for
        order.answer(tried.conversation().rehearse(question_mu(price.epsilon, None, rehearsal.delta)))
    if data.ledger_is_new:
        print_note(
            f"Note: {data.declared.ledger} is a new ledger. If this data was asked about before, use the ledger "
            "that knows of it."
        )
    if known is None and data.budget is None and not data.is_declared:
        print_note(f"Note: --budget was not given, so this new account holds {rounded_up(budget.epsilon)} in all, for ever.")
    private = with_notes(lambda: data.private_data(None, budget))
    n_before = private.budget.n_questions
    bought = with_notes(lambda: order.explainer(private)(epsilon=price.epsilon))
    if order.keep is not None:
        order.keep(bought)
    _hand_out(order, with_notes(lambda: order.answer(bought)), private, n_before, output)


def _hand_out(order: Order[B, A], answer: A, private: PrivateData, n_before: int, output: OutputOptions) -> None:
    from ..show import page, write_page

    after = private.budget
    paid = f"cost epsilon {rounded_up(epsilon_of(answer.cost.mu, after.delta))}"  # what it reveals may be more: its promise
    line = (
        f"The answer {paid if after.n_questions > n_before else 'was stored already and cost nothing'}. Spent so far: "
        f"epsilon {rounded_up(after.spent_epsilon)} of {rounded_up(after.budget.epsilon)}; a question of up to epsilon "
        f"{rounded_down(after.remaining_epsilon)} still fits."
    )

    def write_html(file: Path) -> None:
        bill = after.bill(newest=PAGE_LINES)
        write_page(page(answer, dataset=private.name, model=order.model, bill=bill, notes=(line,)), file)

    give(
        output,
        order.what,
        content_of(answer),
        lambda: show(answer, order.model, line),
        {".html": write_html} | {ending: partial(writer, answer) for ending, writer in order.writers.items()},
        summary=(line,) if isinstance(answer, Result) else (repr(answer), line),
        after=STILL_PAID,
        first=answer.read_first if isinstance(answer, Result) else (),
    )


# --- quotes --------------------------------------------------------------------------------------------------------------


def account_of(data: DataOptions) -> Statement | None:
    """The account as it stands; None where it was not opened yet. Looking opens none."""
    if data.ledger_is_new:
        return None
    account = data.declared.account or data.declared.name
    with closing(open_existing_ledger(data.declared.ledger)) as ledger:
        return ledger.statement(account) if account in ledger.accounts() else None


def print_quote(
    order: Order[B, A],
    explainer: GlobalExplainer[B],
    data: DataOptions,
    price: PriceOptions,
    account: Statement | None,
    *,
    as_json: bool,
) -> None:
    """Price, bands, and whether account and cap, as they stand, can pay for it; ``account`` is None where none was named."""
    from ..vault import price_tag

    quoted = explainer.quote(epsilon=price.epsilon, half_width=price.half_width, verdict=price.verdict)
    tag = quoted.price
    if account is not None:
        tag = price_tag(account, tag.cost, None, data.declared.n_rows_public, analyst=data.analyst, part=None)
    if as_json:
        verdict: dict[str, JsonValue] = {"fits": None, "remaining_epsilon": None} if account is None else {}
        print_json({**quoted.to_json(), "price": {**tag.to_json(), **verdict}})
        return
    promise = tag.guarantee
    print_lines(
        f"The price of {explainer.conversation().label}: epsilon {rounded_up(promise.epsilon)} at delta "
        f"{rounded_up(promise.delta)} (mu {rounded_up(promise.mu)}, neighbours {promise.neighbours})."
    )
    widths = quoted.widths_text.replace("+-", "± ")
    print_lines(
        f"Bands of about: {widths}. That is an estimate from rows drawn from {quoted.stands_on}."
        if widths
        else "How wide the bands would be is not known beforehand."
    )
    if quoted.verdict is not None:
        print_lines(f"Verdict to expect: {quoted.verdict_text}.")
    if order.details is not None:
        order.details(quoted, explainer)
    if account is not None:
        print_lines(
            f"It {'fits' if tag.fits else 'does not fit'}: the largest question that the account can still pay for is "
            f"epsilon {rounded_down(tag.remaining_epsilon)}. Nothing was charged."
        )


def with_notes(explain: Callable[[], T]) -> T:
    """Explain; what the library warns of becomes a note. Other packages' warnings are dropped: they may be about rows."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = explain()
    ours = [
        warning for warning in caught if warning.category is UserWarning and Path(warning.filename).is_relative_to(PACKAGE)
    ]
    # These name the line that called us.
    ours += [warning for warning in caught if warning.category in (LedgerWarning, RowCountWarning)]
    for text in dict.fromkeys(str(warning.message) for warning in ours):
        print_note(f"Note: {in_options(text)}")
    return result

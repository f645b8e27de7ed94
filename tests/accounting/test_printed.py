"""What is printed about a price is never kinder than the number; and no text about a price is formatted in any other way."""

import ast
import math
import re
from decimal import Decimal, localcontext
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from vitrail import Budget, Cost, Guarantee
from vitrail.accounting import rounded_down, rounded_up
from vitrail.ledger.allowance import refusal

ROOT = Path(__file__).resolve().parents[2]
SOURCES = sorted([*(ROOT / "src").rglob("*.py"), *(ROOT / "examples").rglob("*.py")])
FLOATS = st.one_of(
    st.floats(0, 1e12), st.floats(0, 1e-5), st.floats(0.9, 1.1), st.floats(allow_nan=False, allow_infinity=False)
)


@given(FLOATS, st.integers(1, 17))
@example(1.00499, 3)
@example(5e-324, 4)
@example(1.7976931348623157e308, 1)
@example(0.1, 17)
def test_rounding_up_never_understates_and_rounding_down_never_overstates(value: float, digits: int) -> None:
    written = Decimal(repr(value))
    up, down = Decimal(rounded_up(value, digits)), Decimal(rounded_down(value, digits))
    assert down <= written <= up
    assert up - down <= Decimal(1).scaleb(written.adjusted() - digits + 1)  # at most one unit of the last digit apart
    assert all(len(text.as_tuple().digits) <= digits or text.as_tuple().exponent >= 0 for text in (up, down))


@given(st.integers(0, 9999), st.integers(-12, 3))
def test_a_number_that_is_short_enough_is_printed_as_it_was_written(whole: int, power: int) -> None:
    """0.1 lies above one tenth in binary, and 0.3 below three tenths; both are decimals to whoever declared them."""
    value = float(f"{whole}e{power}")
    assert Decimal(rounded_up(value)) == Decimal(rounded_down(value)) == Decimal(f"{whole}e{power}")


def test_the_promise_that_was_printed_as_one() -> None:
    assert rounded_up(1.00499, 3) == "1.01"
    promise = Guarantee(1.000499, 1.000499e-6, 0.2367499)
    assert "(epsilon = 1.001, delta = 1.001e-06)" in promise.sentence
    assert "0.2368-GDP" in promise.sentence
    assert promise.brief == "epsilon=1.001 at delta=1.001e-06"


def test_infinite_and_zero_are_said() -> None:
    assert (rounded_up(math.inf), rounded_down(math.inf), rounded_up(0.0), rounded_up(-0.0)) == ("inf", "inf", "0", "0")


def test_a_callers_short_decimal_context_changes_nothing() -> None:
    with localcontext() as context:
        context.prec = 2
        assert (rounded_up(1.23456789, 8), rounded_down(1.23456789, 8)) == ("1.2345679", "1.2345678")


def test_a_refusal_tells_what_was_asked_from_what_is_left_however_close_they_are() -> None:
    capacity = Budget(1.0, 1e-6).capacity()
    cost = Cost(capacity.pico_mu_squared + 1)
    said = str(refusal(cost, Cost(), capacity, account="adult", delta=Budget(1.0, 1e-6).question_delta, analyst=None))
    asked, left = re.search(r"costs epsilon ([\d.]+) .* but only ([\d.]+) is left", said).groups()  # type: ignore[union-attr]
    assert Decimal(asked) > Decimal(left) == 1


# A price in an f-string: by the name of what is formatted, or by the words in front of it. A raw format of such a number
# rounds to the nearest.
PRICE_NAME = re.compile(r"(?<![a-z])(epsilons?|deltas?|mu|cost|price|spent|so_far)(?![a-z])|remaining", re.IGNORECASE)
PRICE_WORD = re.compile(r"(epsilon|delta|\bmu|ε|δ|μ)\s*(=|<=|>=|≤|of|is|below|up to)?\s*$", re.IGNORECASE)
ROUNDS = re.compile(r"[gGeEfF%]$")
TEMPLATE = re.compile(r"\{\w*(epsilon|delta|mu|spent|remaining)\w*:[^}]*[gGeEfF%]\}")


def raw_prices(source: str) -> list[str]:
    """Prices that a text rounds to the nearest, and where."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.JoinedStr):
            before = ""
            for part in node.values:
                if isinstance(part, ast.Constant):
                    before += str(part.value)
                    continue
                assert isinstance(part, ast.FormattedValue)
                spec = "" if part.format_spec is None else ast.unparse(part.format_spec)[2:-1]
                shown = ast.unparse(part.value)
                if ROUNDS.search(spec) and (PRICE_NAME.search(shown) or PRICE_WORD.search(before)):
                    found.append(f"line {node.lineno}: {{{shown}:{spec}}}")
                before = ""
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and (raw := TEMPLATE.search(node.value)):
            found.append(f"line {node.lineno}: {raw.group()}")
    return found


@pytest.mark.parametrize(
    "guilty",
    [
        'f"epsilon={promise.epsilon:.4g}"',
        'f"{self.remaining_epsilon:.3g}"',
        'f"This costs epsilon {asked:.4g}"',
        'f"spent ε = {x:.2f}"',
        'f"mu = {mu:.3g}"',
        'f"{line.so_far:.3g}"',
        '"(epsilon = {epsilon:g})".format(epsilon=1.00499)',
        'f"{epsilon_of(mu, delta):.{digits}g}"',
    ],
)
def test_the_search_finds_what_it_is_for(guilty: str) -> None:
    assert raw_prices(guilty)


@pytest.mark.parametrize("innocent", ['f"{rounded_up(promise.epsilon)}"', 'f"{values.std():.3g}"', 'f"epsilon {epsilon}"'])
def test_the_search_lets_the_rest_be(innocent: str) -> None:
    assert not raw_prices(innocent)


def test_no_text_about_a_price_rounds_to_the_nearest() -> None:
    found = {path.name: raw for path in SOURCES if (raw := raw_prices(path.read_text(encoding="utf-8")))}
    assert found == {}

"""Public input to the ledger, checked before anything is charged."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..accounting import Cost, Event, JsonValue, event_to_json
from ..errors import InvalidInput
from ..guarantee import Budget
from .entries import canonical_json

LONGEST_NAME = 200
LARGEST_QUESTION = 64 * 1024
LARGEST_KEPT = 64 * 2**20
_HEX_DIGEST = re.compile(r"[0-9a-f]{16,128}")


def check_name(name: str, what: str) -> str:
    """An account's or analyst's name, if it can be one."""
    if not isinstance(name, str) or not 0 < len(name) <= LONGEST_NAME or not name.isprintable() or name != name.strip():
        raise InvalidInput(
            f"the name of {what} is {name!r}; it must be printable text of 1 to {LONGEST_NAME} characters, without spaces "
            "at its ends"
        )
    return name


def check_digest(digest: str | None, what: str) -> str | None:
    """A key or the name of a recipe, if it is one."""
    if digest is not None and not (isinstance(digest, str) and _HEX_DIGEST.fullmatch(digest)):
        raise InvalidInput(f"{what} is {digest!r}; it must be None or a digest of 16 to 128 lower-case hex digits")
    return digest


def check_bytes(content: bytes, what: str, most: int | None = None) -> bytes:
    """A release or something to keep, if it is bytes and not too many."""
    if not isinstance(content, bytes):
        raise InvalidInput(f"the {what} is a {type(content).__name__}; it must be bytes")
    if most is not None and len(content) > most:
        raise InvalidInput(f"the {what} takes {len(content)} bytes; it may take {most}: keep it in pieces")
    return content


def check_cost(cost: Cost) -> Cost:
    """A price, if it is one; a price below nothing would be a refund."""
    if not isinstance(cost, Cost) or min(cost.pico_mu_squared, cost.pico_epsilon, cost.quecto_delta) < 0:
        raise InvalidInput(f"the price is {cost!r}; it must be a Cost of at least nothing: nothing is ever refunded")
    return cost


def check_question(question: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The public description of a question, if it is small and plain."""
    if not isinstance(question, Mapping):
        raise InvalidInput(f"question is a {type(question).__name__}; it must be a mapping of plain JSON values")
    size = len(canonical_json(question, "the question"))
    if size > LARGEST_QUESTION:
        raise InvalidInput(f"the question's description takes {size} characters; it must stay under {LARGEST_QUESTION}")
    return dict(question)


def check_budget(budget: Budget) -> Budget:
    """A budget, if it is one."""
    if not isinstance(budget, Budget):
        raise InvalidInput(f"budget is a {type(budget).__name__}; it must be a vitrail.Budget")
    return budget


def price(event: Event) -> Cost:
    """What the event costs, if its numbers make sense."""
    try:
        canonical_json(event_to_json(event), "the event")
        return check_cost(event.cost())
    except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidInput(f"the event {event!r} has no price: {error}") from error

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


def check_key(key: str | None) -> str | None:
    """An idempotency key, if it is one."""
    if key is not None and not (isinstance(key, str) and _HEX_DIGEST.fullmatch(key)):
        raise InvalidInput(f"key is {key!r}; it must be None or a digest of 16 to 128 lower-case hex digits")
    return key


def check_recipe(recipe: str | None) -> str | None:
    """The name of a recipe, if it is one."""
    if recipe is not None and not (isinstance(recipe, str) and _HEX_DIGEST.fullmatch(recipe)):
        raise InvalidInput(f"recipe is {recipe!r}; it must be None or a digest of 16 to 128 lower-case hex digits")
    return recipe


def check_cost(cost: Cost) -> Cost:
    """A price, if it is one."""
    if not isinstance(cost, Cost) or min(cost.pico_mu_squared, cost.pico_epsilon, cost.quecto_delta) < 0:
        raise InvalidInput(f"cost is {cost!r}; it must be a vitrail.accounting.Cost of at least nothing")
    return cost


def check_question(question: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """The public description of a question, if it is small and plain."""
    if not isinstance(question, Mapping):
        raise InvalidInput(f"question is a {type(question).__name__}; it must be a mapping of plain JSON values")
    size = len(canonical_json(question, "the question"))
    if size > LARGEST_QUESTION:
        raise InvalidInput(f"the question's description takes {size} characters; it must stay under {LARGEST_QUESTION}")
    return dict(question)


def check_release(release: bytes) -> bytes:
    """The bytes of a release, if they are bytes."""
    if not isinstance(release, bytes):
        raise InvalidInput(f"the release is a {type(release).__name__}; it must be bytes")
    return release


def check_content(content: bytes) -> bytes:
    """The bytes of something to keep, if they are bytes and not too many."""
    if not isinstance(content, bytes):
        raise InvalidInput(f"the content to keep is a {type(content).__name__}; it must be bytes")
    if len(content) > LARGEST_KEPT:
        raise InvalidInput(f"the content to keep takes {len(content)} bytes; it may take {LARGEST_KEPT}: keep it in pieces")
    return content


def check_budget(budget: Budget) -> Budget:
    """A budget, if it is one."""
    if not isinstance(budget, Budget):
        raise InvalidInput(f"budget is a {type(budget).__name__}; it must be a vitrail.Budget")
    return budget


def price(event: Event) -> Cost:
    """What the event costs, if its numbers make sense; a price below nothing would be a refund."""
    try:
        canonical_json(event_to_json(event), "the event")
        cost = event.cost()
    except (AttributeError, TypeError, ValueError, ArithmeticError) as error:
        raise InvalidInput(f"the event {event!r} has no price: {error}") from error
    if min(cost.pico_mu_squared, cost.pico_epsilon, cost.quecto_delta) < 0:
        raise InvalidInput(f"the event {event!r} would cost less than nothing; nothing is ever refunded")
    return cost

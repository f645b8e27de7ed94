"""Which releases stand behind a result."""

from __future__ import annotations

import json

import pytest

from vitrail.accounting import NOTHING, Basis, Cost

A, B = Basis.of("a", Cost.of_mu(0.3)), Basis.of("b", Cost(1, 2, 3 * 10**29))


def test_the_same_release_counts_once_and_different_ones_add() -> None:
    assert (A | B | A).cost == A.cost + B.cost
    assert Basis.union([A, A, NOTHING]) == A
    assert Basis.union([]) == NOTHING
    assert not NOTHING


def test_two_new_releases_are_two_whatever_they_cost() -> None:
    cost = Cost.of_mu(0.1)
    assert (Basis.new(cost) | Basis.new(cost)).cost == cost + cost
    assert Basis.new(Cost()) == NOTHING


def test_one_name_with_two_prices_counts_both() -> None:
    assert (A | Basis.of("a", Cost.of_mu(0.4))).cost == A.cost + Cost.of_mu(0.4)


def test_a_bundle_costs_what_its_releases_cost_and_is_known_again() -> None:
    assert (A | B).bundled().cost == (A | B).cost
    assert (A | B).bundled() == (B | A).bundled()
    assert len((A | B).bundled().paid) == 1
    assert A.bundled() == A


def test_json_brings_it_back() -> None:
    assert Basis.from_json(json.loads(json.dumps((A | B).to_json()))) == A | B


@pytest.mark.parametrize(
    "stored",
    [
        "ab",
        [["a", 1, 2]],
        [["", 1, 2, 3]],
        [["a", -1, 0, "0"]],
        [["a", True, 0, "0"]],
        [["a", 1.5, 0, "0"]],
        [[1, 1, 0, "0"]],
    ],
)
def test_anything_else_is_refused(stored: object) -> None:
    with pytest.raises(ValueError, match="behind a promise"):
        Basis.from_json(stored)

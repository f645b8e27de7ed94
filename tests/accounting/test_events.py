"""The ledger's vocabulary: frozen, priced from its own numbers, and refused when unknown."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from vitrail.accounting import (
    Cost,
    Event,
    FixedBlock,
    GaussianSum,
    Selection,
    UnknownEvent,
    event_from_json,
    event_to_json,
)
from vitrail.accounting.events import mu_of_bounded_range

positive = st.floats(1e-9, 1e9)
events = st.one_of(
    st.builds(GaussianSum, positive, positive),
    st.builds(Selection, st.floats(1e-6, 16)),
    st.builds(FixedBlock, positive, st.floats(1e-12, 0.5), positive, st.floats(1e-6, 1), st.integers(1, 10**6)),
)


@given(events)
def test_events_survive_json_and_keep_their_price(event: Event) -> None:
    again = event_from_json(json.loads(json.dumps(event_to_json(event))))
    assert again == event
    assert type(again) is type(event)
    assert again.cost() == event.cost()


def test_version_1_is_written_like_this_for_ever() -> None:
    """These lines stand in ledgers already: a change here is a new version, not an edit."""
    assert event_to_json(GaussianSum(1.0, 2.0)) == {"kind": "gaussian-sum", "version": 1, "sensitivity": 1.0, "sigma": 2.0}
    assert event_to_json(Selection(0.5)) == {"kind": "selection", "version": 1, "epsilon": 0.5}
    assert event_to_json(FixedBlock(1.0, 1e-6, 1.3, 0.01, 100)) == {
        "kind": "fixed-block",
        "version": 1,
        "epsilon": 1.0,
        "delta": 1e-6,
        "noise_multiplier": 1.3,
        "sampling_rate": 0.01,
        "steps": 100,
    }


def test_prices() -> None:
    assert GaussianSum(sensitivity=1.0, sigma=2.0).cost() == Cost(pico_mu_squared=250_000_000_000)
    assert Selection(epsilon=1.0).cost() == Cost.of_mu(mu_of_bounded_range(1.0))
    assert FixedBlock(0.5, 1e-6, 1.3, 0.01, 100).cost() == Cost.of_block(0.5, 1e-6)


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"kind": "laplace-sum", "version": 1, "sensitivity": 1.0, "sigma": 2.0},
        {"kind": "gaussian-sum", "version": 2, "sensitivity": 1.0, "sigma": 2.0},
        {"kind": "gaussian-sum", "version": "1", "sensitivity": 1.0, "sigma": 2.0},
        {"kind": "gaussian-sum", "version": None, "sensitivity": 1.0, "sigma": 2.0},
        {"kind": "gaussian-sum", "sensitivity": 1.0, "sigma": 2.0},
        {"kind": ["gaussian-sum"], "version": 1, "sensitivity": 1.0, "sigma": 2.0},
        {"kind": "gaussian-sum", "version": 1, "sensitivity": 1.0},
        {"kind": "gaussian-sum", "version": 1, "sensitivity": 1.0, "sigma": 2.0, "discount": 0.5},
    ],
)
def test_what_is_not_understood_is_refused(fields: dict[str, object]) -> None:
    with pytest.raises(UnknownEvent):
        event_from_json(fields)

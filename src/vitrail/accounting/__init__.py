"""Pure mathematics of spending: GDP, conversions, integer costs, events, disjoint parts. No input or output, no data."""

from .cost import NOTHING, Basis, Cost, JsonValue, Spending, dearest, exposure
from .events import (
    ADD_REMOVE,
    REPLACE_ONE,
    Event,
    FixedBlock,
    GaussianSum,
    Selection,
    UnknownEvent,
    block_epsilon,
    bounded_range_epsilon_of,
    event_from_json,
    event_to_json,
    mu_of_bounded_range,
    mu_of_pure,
)
from .gdp import delta_of, epsilon_of, mu_of, rounded_down, rounded_up

__all__ = [
    "ADD_REMOVE",
    "NOTHING",
    "REPLACE_ONE",
    "Basis",
    "Cost",
    "Event",
    "FixedBlock",
    "GaussianSum",
    "JsonValue",
    "Selection",
    "Spending",
    "UnknownEvent",
    "block_epsilon",
    "bounded_range_epsilon_of",
    "dearest",
    "delta_of",
    "epsilon_of",
    "event_from_json",
    "event_to_json",
    "exposure",
    "mu_of",
    "mu_of_bounded_range",
    "mu_of_pure",
    "rounded_down",
    "rounded_up",
]

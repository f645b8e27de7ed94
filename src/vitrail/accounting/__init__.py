"""Pure mathematics of spending: GDP, conversions, integer costs, events, disjoint parts. No input or output, no data."""

from .cost import NOTHING, Basis, Cost, JsonValue, Spending, dearest, exposure
from .events import (
    Event,
    FixedBlock,
    GaussianSum,
    LaplaceSum,
    Selection,
    UnknownEvent,
    block_epsilon,
    bounded_range_epsilon_of,
    event_from_json,
    event_to_json,
)
from .gdp import epsilon_of, mu_of, rounded_down, rounded_up

__all__ = [
    "NOTHING",
    "Basis",
    "Cost",
    "Event",
    "FixedBlock",
    "GaussianSum",
    "JsonValue",
    "LaplaceSum",
    "Selection",
    "Spending",
    "UnknownEvent",
    "block_epsilon",
    "bounded_range_epsilon_of",
    "dearest",
    "epsilon_of",
    "event_from_json",
    "event_to_json",
    "exposure",
    "mu_of",
    "rounded_down",
    "rounded_up",
]

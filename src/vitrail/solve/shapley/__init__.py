"""Interventional Shapley values of public points on given background rows."""

from .on_rows import (
    LOG_ODDS_MARGIN,
    Method,
    Players,
    RowValues,
    Scale,
    balanced_orders,
    players_of,
    shapley_of_outputs,
    shapley_on,
)

__all__ = [
    "LOG_ODDS_MARGIN",
    "Method",
    "Players",
    "RowValues",
    "Scale",
    "balanced_orders",
    "players_of",
    "shapley_of_outputs",
    "shapley_on",
]

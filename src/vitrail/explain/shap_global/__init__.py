"""Shapley values over all rows: importance and dependence."""

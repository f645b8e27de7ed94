"""Shapley values from released sums."""

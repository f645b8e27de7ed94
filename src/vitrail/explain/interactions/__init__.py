"""Interactions: which pairs of columns act together (Friedman's H)."""

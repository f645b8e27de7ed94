"""Permutation importance: how much worse a model gets when a column is exchanged for what other rows might have there."""

"""Counterfactuals: a private picture of the classes, paid once, and what would have changed the answer for anyone, free."""

"""The search for counterfactuals in a released picture of the classes."""

"""Nothing but ``paying``, which counterfactuals use until they are a recipe."""

"""Every global explanation of a model from one price."""

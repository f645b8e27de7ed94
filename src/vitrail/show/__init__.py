"""Plots and reports, drawn from explanations alone."""

"""Interventional Shapley values of public points on given background rows."""

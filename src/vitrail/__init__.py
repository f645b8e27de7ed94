"""Explain machine-learning models from private data, under differential privacy."""

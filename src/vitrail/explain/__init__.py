"""Explainers: post-processing of what the vault releases."""

"""Noise and other draws, exact up to a stated distance, from the operating system."""

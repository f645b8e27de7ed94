"""The owner's desk: from a CSV file and a trained model to a declared dataset, and whether the two fit.

Everything here is done by the owner of the rows, before anybody asks anything: a *declaration* (``census.toml``) is proposed
from a code book, types and names, and read by ``vt.open`` and every command; the *doctor* says what does not fit.
A service reads declarations too (``declaration``), and must not load the rest, which reads rows exactly: so nothing is
imported here.
"""

"""The owner's desk: from a CSV file and a trained model to a declared dataset, and whether the two fit.

Everything here is done by the owner of the rows, before anybody asks anything: a *declaration* (``census.toml``) is proposed
from a code book, types and names, and read by ``vt.open`` and every command; the *doctor* says what does not fit.
"""

from .checkup import Checkup, Finding
from .declaration import Declaration
from .doctor import doctor

__all__ = ["Checkup", "Declaration", "Finding", "doctor"]

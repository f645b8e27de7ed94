"""What can go wrong, in sentences: what was given, what is allowed, what to do.

Every error here is a function of public input and of the ledger alone, and is raised before anything is charged, but for
two: ``Unanswered``, and an answer that cannot be stored; both were paid for, and their messages say so. What goes wrong on a
private row is never reported: the message would be data. ``nothing_escapes`` lists what may be said.

Examples
--------
>>> import vitrail as vt
>>> try:
...     vt.Budget(epsilon=1.0, delta=2.0)
... except vt.errors.InvalidInput as error:
...     print(error)
delta of a budget is 2.0; it must lie strictly between 0 and 1, for example 1e-6
"""

from __future__ import annotations


class VitrailError(Exception):
    """The root of every exception this library raises on purpose."""


class InvalidInput(VitrailError, ValueError):
    """An argument is outside what its documentation allows."""


class DamagedFile(InvalidInput):
    """A file that Vitrail did not write, or that is no longer whole."""


class SchemaError(InvalidInput):
    """Columns, levels or points do not fit the declared schema."""


class ModelError(InvalidInput):
    """A model has no declared range, the wrong shape, or is not a function of its row alone."""


class ImpureFunction(InvalidInput):
    """A function that would run on private rows depends on more than its row (seen on public probe rows)."""


class Unanswered(VitrailError):
    """A question was charged and could not be answered: a file is damaged, or something about which nothing may be said."""


class LedgerError(VitrailError):
    """The ledger cannot be opened, or what it holds contradicts what was asked."""


class LedgerCorrupted(LedgerError):
    """The ledger's chain does not verify: an entry was changed, removed or put in from outside."""


class LedgerRolledBack(LedgerError):
    """The ledger is an older copy, or another one in its place: its history does not pass through the recorded head."""


class LedgerWarning(UserWarning):
    """The bill is kept in a way that can forget what was spent."""


class RowCountWarning(UserWarning):
    """A release counts another number of rows than the owner declared, by more than its noise."""


class BudgetExceeded(VitrailError):
    """The question would cost more than is left. Nothing was charged; a cheaper question may still fit.

    Attributes
    ----------
    requested_epsilon, remaining_epsilon : float
        Both at the account's delta. ``remaining_epsilon`` is the largest single question that still fits.
    cap : str
        Which cap refused: ``"dataset"``, or ``"analyst NAME"``.
    """

    def __init__(self, message: str, *, requested_epsilon: float, remaining_epsilon: float, cap: str = "dataset") -> None:
        super().__init__(message)
        self.requested_epsilon = requested_epsilon
        self.remaining_epsilon = remaining_epsilon
        self.cap = cap

"""Notes about a model, each said once where somebody hears it."""

from __future__ import annotations

import warnings


def say_once(text: str, said: set[str]) -> None:
    """Warn of something once. Rehearsals silence warnings: what is said to nobody there is said again.

    Parameters
    ----------
    text : str
        The sentence.
    said : set of str
        What the model has said.

    Examples
    --------
    >>> said = set()
    >>> for _ in range(2):
    ...     with warnings.catch_warnings(record=True) as heard:
    ...         warnings.simplefilter("always")
    ...         say_once("It is given features.", said)
    ...         print(len(heard))
    1
    0
    """
    if text in said or not _is_heard(text):
        return
    said.add(text)
    warnings.warn(text, UserWarning, stacklevel=1)  # a note of this package: the command line prints these


def _is_heard(text: str) -> bool:
    """Whether the filters let a warning from here through."""
    for action, message, category, module, line in warnings.filters:
        if (
            line == 0
            and issubclass(UserWarning, category)
            and all(pattern is None or pattern.match(given) for pattern, given in ((message, text), (module, __name__)))
        ):
            return action != "ignore"
    return True

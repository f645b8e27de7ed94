"""Which model a question is about: its content within one question, and as much as can be known of a function.

A bare function has no hash of its content (``content_walk``): what it reaches through its globals cannot be followed. What
*can* be known of it, its instructions, constants, defaults and the values it closes over, is its *sketch*. A sketch never
makes a question known by itself. It keeps two functions apart that were given one name (``key=``). Another version of Python
compiles other instructions; the same question is then charged again, which is the safe side of being wrong.
"""

from __future__ import annotations

import functools
import hashlib
import types
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import numpy as np

from .content_walk import content_digest

_remembered: ContextVar[dict[int, tuple[object, str | None]] | None] = ContextVar("_remembered", default=None)


@contextmanager
def read_once() -> Iterator[None]:
    """Within this, a model's content is read once: while one question is answered nobody fits it again.

    A forest has tens of megabytes, and an answer about one person asks half a dozen times which model it is about. Only
    for releases, which are public: what is charged for reads content anew.
    """
    if _remembered.get() is not None:
        yield
        return
    token = _remembered.set({})
    try:
        yield
    finally:
        _remembered.reset(token)


def remembered(model: object, digest: Callable[[], str | None]) -> str | None:
    """The digest of a model, computed at most once within ``read_once``."""
    known = _remembered.get()
    if known is None:
        return digest()
    if id(model) not in known:
        known[id(model)] = model, digest()  # the model is held, so that its id stays its own
    return known[id(model)][1]


_MODELS = ("predict", "predict_proba", "transform", "state_dict")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), type(...))


def sketch(given: object) -> str:
    """SHA-256 of what can be known of a function, or of anything else: equal for equal ones, and often different for others.

    Examples
    --------
    >>> def above(limit):
    ...     return lambda x: x > limit
    >>> sketch(above(1)) == sketch(above(1)), sketch(above(1)) == sketch(above(2))
    (True, False)
    """
    try:
        description = repr(_told(given, {}))
    except Exception:  # an object that objects to being looked at, whatever it raises, is known by its class
        description = repr((type(given).__module__, type(given).__qualname__))
    return hashlib.sha256(description.encode()).hexdigest()


def _told(given: object, met: dict[int, object]) -> object:
    """Texts and tuples of them that tell what is given.

    What is met again is not followed again: it may lead to itself. (Holding an object in ``met`` keeps its id its own.)
    """

    def each(many: Iterable[object]) -> tuple[object, ...]:
        return tuple(_told(item, met) for item in many)

    if isinstance(given, _PLAIN):
        return type(given).__name__, repr(given)
    if isinstance(given, types.CodeType):
        # Neither file names nor line numbers: a function that moves is the same function.
        names = given.co_names, given.co_varnames, given.co_freevars
        return given.co_code.hex(), each(given.co_consts), names
    if isinstance(given, tuple):
        return "tuple", each(given)
    if isinstance(given, set | frozenset):  # in an order that does not change from one process to the next
        return type(given).__name__, tuple(sorted(map(repr, each(given))))
    if id(given) in met:
        return "met before", type(given).__qualname__
    met[id(given)] = given
    if isinstance(given, types.FunctionType):
        cells = [_content_of(cell) for cell in given.__closure__ or ()]
        return each((given.__code__, given.__defaults__, given.__kwdefaults__, *cells))
    if isinstance(given, types.MethodType):
        return each((given.__func__, given.__self__))
    if isinstance(given, functools.partial):
        return each((given.func, given.args, given.keywords))
    if isinstance(given, list):
        return "list", each(given)
    if isinstance(given, dict):
        return "dict", each(given), each(given.values())
    kind = type(given).__module__, type(given).__qualname__, str(getattr(given, "__name__", ""))
    like_a_model = isinstance(given, np.ndarray | np.generic) or any(hasattr(given, name) for name in _MODELS)
    if like_a_model and (content := content_digest(given)) is not None:
        return kind, content
    if isinstance(given, type | types.ModuleType) or not callable(given):
        return kind  # whatever else a function reaches is no model, and not looked into
    called = [vars(base).get("__call__") for base in type(given).__mro__ if "__call__" in vars(base)]
    code = called[0] if called and isinstance(called[0], types.FunctionType) else None
    return kind, each((code, getattr(given, "__dict__", None)))


def _content_of(cell: types.CellType) -> object:
    try:
        return cell.cell_contents
    except ValueError:  # a name that was not bound yet
        return None

"""Functions as models, and the estimators that they call.

A function is given features in [0, 1], and says nothing of what it expects. But many a function only calls an estimator
(``lambda x: forest.predict_proba(x)[:, 1]``), and that one recorded what it was fitted on. So estimators that a function
reaches, through its closure, its globals, its defaults or as the object of a method, are looked for; ``feeds`` compares what
they expect with what the function would be given.
"""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator

from .contents import sketch
from .predictors import ModelInput, Predictor


class FunctionPredictor(Predictor):
    """Any callable from a block of rows to a block of outputs.

    Attributes
    ----------
    calls : tuple of (str, Predictor)
        The estimators that it reaches, by the name it knows them by.
    """

    def __init__(self, function: Callable[[ModelInput], object], calls: tuple[tuple[str, Predictor], ...] = ()) -> None:
        super().__init__(function, str(getattr(function, "__name__", type(function).__name__)))
        self.calls = calls
        # Before the first call: a function may keep counts or a cache in what it closes over.
        self._sketch = sketch(function)

    def __call__(self, inputs: ModelInput) -> object:
        """Call the function."""
        return self.wrapped(inputs)

    def look_again(self) -> None:
        """Take the estimators that it calls as they are now."""
        for _, estimator in self.calls:
            estimator.look_again()

    def content(self) -> str | None:
        """None: code has no stable hash."""
        return None

    def sketch(self) -> str:
        """Instructions, constants, and what it closed over when the model was made."""
        return self._sketch

    def __getstate__(self) -> dict[str, object]:
        return {**self.__dict__, "calls": ()}  # what to give it has been decided where it was made


def estimators_in(function: object) -> Iterator[tuple[str, object]]:
    """What a function reaches that predicts or transforms, by name."""
    seen: set[int] = set()
    for name, held in _reached(function, 3):
        if id(held) not in seen and not isinstance(held, type | types.ModuleType) and _is_fitted(held):
            seen.add(id(held))
            yield name, held


def _is_fitted(held: object) -> bool:
    acts = any(callable(getattr(held, method, None)) for method in ("predict", "predict_proba", "transform"))
    return acts and not callable(getattr(held, "forward", None))  # a torch module says nothing of its columns


def _reached(given: object, depth: int) -> Iterator[tuple[str, object]]:
    """Objects that a function refers to; functions among them are followed."""
    if isinstance(given, functools.partial):
        inner: list[tuple[str, object]] = [("func", given.func), *(("argument", argument) for argument in given.args)]
        inner += given.keywords.items()
    elif isinstance(given, types.MethodType):
        inner = [("estimator", given.__self__)]
    elif isinstance(given, types.FunctionType):
        inner = list(_referred(given))
    else:
        return
    for name, held in inner:
        yield name, held
        if depth > 0:
            yield from _reached(held, depth - 1)


def _referred(function: types.FunctionType) -> Iterator[tuple[str, object]]:
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:  # a name that was not bound yet
            continue
    names = function.__code__.co_varnames
    count = function.__code__.co_argcount
    yield from zip(names[count - len(function.__defaults__ or ()) : count], function.__defaults__ or (), strict=True)
    yield from (function.__kwdefaults__ or {}).items()
    for name in _names_in(function.__code__):
        if name in function.__globals__:
            yield name, function.__globals__[name]


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Names that code or functions inside it look up; names of attributes are among them."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)

"""Functions as models, and the estimators that they call.

A function is given features in [0, 1], and says nothing of what it expects. But many a function only calls an estimator
(``lambda x: forest.predict_proba(x)[:, 1]``), and that one recorded what it was fitted on. So estimators that a function
reaches, through its closure, its globals, its defaults, attributes, lists and dictionaries, are looked for; ``feeds``
compares what they expect with what the function would be given. Where none is found, what it is given is said once.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import sys
import types
from collections import deque
from collections.abc import Callable, Iterator

import numpy as np

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


# How far, and among how many objects, estimators are looked for: enough for anybody's own code, and an end for all of it.
DEEPEST = 6
MOST_OBJECTS = 4000
MOST_ESTIMATORS = 32
# What these define holds no estimator of the user's. Their estimators are found where the user's code holds them.
LIBRARIES = {"catboost", "interpret", "joblib", "lightgbm", "matplotlib", "mlflow", "numpy", "onnxruntime", "pandas"}
LIBRARIES |= {"polars", "pyarrow", "scipy", "sklearn", "torch", "xgboost", *sys.stdlib_module_names}
_DATA = (bool, int, float, complex, str, bytes, bytearray, type(None), np.ndarray, np.generic)


def estimators_in(function: object) -> Iterator[tuple[str, object]]:
    """What a function reaches that predicts or transforms, by the name it has there; the nearest first.

    Nothing is run: attributes are read from where they are stored, so that no property is evaluated.

    Examples
    --------
    >>> from sklearn.linear_model import LinearRegression
    >>> models = {"a": [LinearRegression()]}
    >>> def score(x):
    ...     return models["a"][0].predict(x)
    >>> list(estimators_in(score))
    [("models['a'][0]", LinearRegression())]
    """
    seen, waiting, n_found = {id(function)}, deque([("", function, 0)]), 0
    while waiting:
        name, held, depth = waiting.popleft()
        for inner_name, inner in _parts(name, held):
            if isinstance(inner, _DATA) or id(inner) in seen:
                continue
            if len(seen) >= MOST_OBJECTS or n_found >= MOST_ESTIMATORS:
                return
            seen.add(id(inner))
            if _is_estimator(inner):
                n_found += 1
                yield inner_name, inner
            if depth < DEEPEST:
                waiting.append((inner_name, inner, depth + 1))


def _is_estimator(held: object) -> bool:
    if isinstance(held, type | types.ModuleType) or _root(type(held)) in ("pandas", "polars", "pyarrow"):
        return False
    acts = any(_has(held, method) for method in ("predict", "predict_proba", "transform"))
    return acts and not _has(held, "forward")  # a torch module says nothing of its columns


def _has(held: object, method: str) -> bool:
    return inspect.getattr_static(held, method, None) is not None


def _root(defined: object) -> str:
    """The package that a class or a function is defined in."""
    return str(getattr(defined, "__module__", None) or "").partition(".")[0]


def _parts(name: str, held: object) -> Iterator[tuple[str, object]]:
    """What an object refers to, and by which name."""
    if isinstance(held, functools.partial):
        yield "func", held.func
        yield from (("argument", argument) for argument in held.args)
        yield from held.keywords.items()
    elif isinstance(held, types.MethodType):
        yield "estimator", held.__self__
        yield name or "function", held.__func__
    elif isinstance(held, types.FunctionType):
        yield from _referred(held) if not name or _root(held) not in LIBRARIES else ()
    elif isinstance(held, staticmethod | classmethod):
        yield name, held.__func__
    elif isinstance(held, dict):
        yield from ((f"{name}[{key!r}]", value) for key, value in dict.items(held))
    elif isinstance(held, list | tuple | set | frozenset | deque):
        yield from ((f"{name}[{place}]", item) for place, item in enumerate(held))
    elif isinstance(held, type):
        yield from _stored(name, held) if _root(held) not in LIBRARIES else ()
    elif not isinstance(held, types.ModuleType) and _root(type(held)) not in LIBRARIES:
        yield from _attributes(name, held)
    elif callable(held):  # such as the wrapper of functools.lru_cache
        yield from _attributes(name, held, of_class=False)


def _attributes(name: str, held: object, *, of_class: bool = True) -> Iterator[tuple[str, object]]:
    """Attributes of an object and of its class, as they are stored."""
    yield from _stored(name, held)
    for base in type(held).__mro__ if of_class else ():
        if _root(base) in LIBRARIES:
            continue
        for attribute, value in vars(base).items():
            # A slot is read off the object; a property would run.
            if isinstance(value, types.MemberDescriptorType):
                with contextlib.suppress(AttributeError):
                    yield _joined(name, attribute), value.__get__(held)
            else:
                yield _joined(name, attribute), value


def _stored(name: str, held: object) -> Iterator[tuple[str, object]]:
    try:
        stored = dict(object.__getattribute__(held, "__dict__"))
    except (AttributeError, TypeError):  # it has slots only
        return
    yield from ((_joined(name, attribute), value) for attribute, value in stored.items())


def _joined(name: str, attribute: object) -> str:
    return f"{name}.{attribute}" if name else str(attribute)


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
    yield from vars(function).items()
    looked_up = list(dict.fromkeys(_names_in(function.__code__)))
    for name in looked_up:
        held = function.__globals__.get(name)
        if isinstance(held, types.ModuleType):  # of a module, what the code names
            root = held.__name__.partition(".")[0]
            named = {} if root in LIBRARIES else {key: vars(held)[key] for key in looked_up if key in vars(held)}
            yield from ((f"{name}.{attribute}", value) for attribute, value in named.items())
        elif held is not None:
            yield name, held


def _names_in(code: types.CodeType) -> Iterator[str]:
    """Names that code or functions inside it look up; names of attributes are among them."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names_in(constant)

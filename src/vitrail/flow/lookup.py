"""``of``: the graph that an explainer publishes."""

from __future__ import annotations

from ..errors import InvalidInput
from .catalogue import CATALOGUE
from .stages import Stages

DECLARATION = "__vitrail_flow__"
OUR_PACKAGE = __name__.split(".")[0]


def names() -> tuple[str, ...]:
    """The names in the catalogue.

    Examples
    --------
    >>> import vitrail as vt
    >>> [name for name in vt.flow.names() if name.startswith("Accumulated")]
    ['AccumulatedEffects']
    """
    return tuple(CATALOGUE)


def of(explainer: object, variant: str | None = None) -> Stages:
    """The stages of an explainer, with the released ones marked.

    Parameters
    ----------
    explainer : class, instance, function or str
        What declares ``__vitrail_flow__``: stages, a name in the catalogue, or a function without arguments that returns
        either. One of ours without it is looked up by its own name; a text is a name in the catalogue.
    variant : str, optional
        The way it is used, where there are several: ``of(vt.LocalLinear, "descent")``.

    Returns
    -------
    Stages

    Examples
    --------
    >>> import vitrail as vt
    >>> vt.flow.of(vt.LocalLinear).released
    ('statistics',)
    >>> vt.flow.of("AccumulatedEffects").minimal()
    ('marginals', 'sizes', 'sums')
    """
    found = explainer if isinstance(explainer, str) else _declared(explainer)
    if variant is not None:
        if not isinstance(found, str):
            raise InvalidInput(f"variant is {variant!r}, but these stages have no variants; leave it away")
        found = f"{found}/{variant}"
    if isinstance(found, Stages):
        return found
    if found not in CATALOGUE:
        raise InvalidInput(f"there are no stages for {found!r}; known are {', '.join(map(repr, CATALOGUE))}")
    return CATALOGUE[found]


def _declared(explainer: object) -> Stages | str:
    """Stages, or the name of stages in the catalogue."""
    declared = getattr(explainer, DECLARATION, None)
    if callable(declared):
        declared = declared()
    if isinstance(declared, Stages | str):
        return declared
    holder = explainer if hasattr(explainer, "__name__") else type(explainer)
    name = str(getattr(holder, "__name__", ""))
    if declared is not None:
        raise InvalidInput(
            f"{name}.{DECLARATION} is a {type(declared).__name__}; it must be vitrail.flow.Stages, a name in the catalogue, "
            "or a function that returns one of them"
        )
    # A stranger's class is not what one of ours with that name is.
    if str(getattr(holder, "__module__", "")).split(".")[0] == OUR_PACKAGE:
        for known in (name, _class_style(name)):
            if known in CATALOGUE:
                return known
    raise InvalidInput(
        f"{name} publishes no stages; give it a class attribute {DECLARATION} = vitrail.flow.Stages(...), or ask for one of "
        f"{', '.join(map(repr, CATALOGUE))}"
    )


def _class_style(name: str) -> str:
    """``private_rows`` as ``PrivateRows``."""
    return "".join(part.capitalize() for part in name.split("_"))

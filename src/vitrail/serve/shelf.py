"""Panes on the shelf of a service: who may read which, and what is explained from them, free.

A pane that an analyst released counts against that analyst's cap, so it is theirs alone until the owner publishes it: then
it is outside all caps, as a pane that was mailed to somebody is.
"""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from ..model import Model
from ..pane.pane import Pane
from . import kinds
from .house import House
from .principal import Principal
from .problems import Problem
from .store import PaneLine, Store, now_utc

KEPT_PANES = 8
KEPT_EXPLANATIONS = 2000
KEPT_BYTES = 64 * 2**20


class Kept:
    """The answers that were given last, by what was asked: so many, and no more bytes than these.

    Examples
    --------
    >>> kept = Kept(most=2, most_bytes=100)
    >>> [kept.get(name, lambda: name.encode()) for name in "aba"]
    [b'a', b'b', b'a']
    """

    def __init__(self, *, most: int, most_bytes: int) -> None:
        self._most, self._most_bytes, self._bytes = most, most_bytes, 0
        self._items: OrderedDict[str, bytes] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, name: str, make: Callable[[], bytes]) -> bytes:
        """What is kept under a name, or what ``make`` makes, which is kept."""
        with self._lock:
            if name in self._items:
                self._items.move_to_end(name)
                return self._items[name]
        made = make()
        with self._lock:
            if name not in self._items and len(made) <= self._most_bytes // 4:
                self._items[name] = made
                self._bytes += len(made)
            while len(self._items) > self._most or self._bytes > self._most_bytes:
                _, gone = self._items.popitem(last=False)
                self._bytes -= len(gone)
        return made


class PaneShelf:
    """What a service can do with panes."""

    house: House
    store: Store
    models: dict[str, Model]

    def __init__(self) -> None:
        self._pages = Kept(most=KEPT_EXPLANATIONS, most_bytes=KEPT_BYTES)
        self._panes: OrderedDict[str, Pane] = OrderedDict()
        self._panes_lock = threading.Lock()

    def _model_name(self, named: str) -> str:
        """The name of a model that a request names, perhaps by the hash of its file."""
        sha = named.removeprefix("sha256:")
        return next((name for name, declared in self.house.models.items() if declared.sha256 == sha), named)

    def _pane_line(self, principal: Principal, name: str) -> PaneLine:
        line = self.store.pane(name)
        if line is None or not self._may_read(principal, line):
            raise Problem("not-found", f"there is no pane {name[:60]!r} that you may read")
        return line

    def _may_read(self, principal: Principal, line: PaneLine) -> bool:
        own = principal.role == "owner" or (line.person == principal.name and principal.role == "analyst")
        return principal.knows(line.dataset) and (own or line.published is not None) and principal.role != "auditor"

    def panes(self, principal: Principal) -> list[PaneLine]:
        """The panes that this person may read: their own, and those that were published."""
        return [line for line in self.store.panes() if self._may_read(principal, line)]

    def pane(self, principal: Principal, name: str) -> bytes:
        """The file of a pane."""
        line = self._pane_line(principal, name)
        content = self.store.content(line.job_id)
        assert content is not None
        return content[1]

    def publish(self, principal: Principal, name: str, *, published: bool) -> PaneLine:
        """Let everybody who knows the dataset read a pane, or nobody but whose it is."""
        principal.check_may_change()
        line = self._pane_line(principal, name)
        self.store.publish(line.id, now_utc() if published else None)
        return self._pane_line(principal, name)

    def _opened(self, line: PaneLine) -> Pane:
        """A pane with the models of the house that it is about; the last few are kept open."""
        with self._panes_lock:
            if line.id in self._panes:
                self._panes.move_to_end(line.id)
                return self._panes[line.id]
        content, job = self.store.content(line.job_id), self.store.job(line.job_id)
        assert content is not None
        assert job is not None
        names = [self._model_name(one) for one in kinds.models_named(job.asked)]
        models = [self.models[name] for name in names if name in self.models]
        given = models if len(models) == len(names) and models else None
        pane = Pane.from_bytes(content[1], model=given if given is None or len(given) > 1 else given[0])
        with self._panes_lock:
            self._panes[line.id] = pane
            while len(self._panes) > KEPT_PANES:
                self._panes.popitem(last=False)
        return pane

    def explain_from_pane(
        self, principal: Principal, name: str, point: Mapping[str, Any], *,
        n_rows: int | None = None, bands: bool = False, model: str | None = None,
    ) -> bytes:  # fmt: skip
        """Why the model says what it says about somebody, from a pane, as JSON text. Free; no row is read."""
        line = self._pane_line(principal, name)
        asked = kinds.canonical({"point": point, "n_rows": n_rows, "bands": bands, "model": model})

        def made() -> bytes:
            options: dict[str, Any] = {} if n_rows is None else {"background": n_rows}
            found = self._opened(line).local(point, bands=bands, model=model, **options)
            return json.dumps(found.to_json(), allow_nan=False).encode()

        return self._pages.get(f"reasons {line.id} {asked}", made)

    def person_page(self, principal: Principal, name: str, point: Mapping[str, Any], *, model: str | None = None) -> bytes:
        """The page of somebody, from a pane. Free; no row is read."""
        line = self._pane_line(principal, name)
        asked = kinds.canonical({"point": point, "model": model})
        made = lambda: self._opened(line).explain(point, model=model).to_html().encode()  # noqa: E731 - one expression
        return self._pages.get(f"person {line.id} {asked}", made)

    def pane_page(self, principal: Principal, name: str) -> bytes:
        """The report of a pane."""
        line = self._pane_line(principal, name)
        return self._pages.get(f"pane {line.id}", lambda: self._opened(line).to_html().encode())

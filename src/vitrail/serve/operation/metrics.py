"""Numbers for those who run a service, in Prometheus' format: budgets, jobs, refusals, requests.

They are read by people and machines that may hear no answers, so they follow from public facts alone:

- what is spent and left follows from prices, which no row decides;
- how long an answer about rows took is not measured: it would be a look at the rows at a finer grain than the slots in
  which answers leave. Latencies are those of *free* routes, which read no row;
- jobs that were answered and jobs that failed are one number ("ended"), so are the status 200 and the status 500 of routes
  that are not free, and refusals leave out ``unanswered`` and ``unexpected``: a model that fails on a row must not move
  one counter rather than another.

``/metrics`` is for the owner and auditors, whom the ledger tells the same and more. The registry is one of our own: what
other libraries of the process measure is not in it.
"""

from __future__ import annotations

import re
from collections import Counter as Tally
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Protocol

import sqlalchemy as sql

from ...errors import VitrailError
from ..problems import TITLES
from ..tables import JOBS

if TYPE_CHECKING:
    from ...ledger import SqlLedger
    from ..house import House

ENDED = ("done", "failed")
STATES = ("waiting", "queued", "running", "ended", "refused", "declined")
"""Of jobs; ``ended`` is any end that came after rows were read."""
TOLD_BY_ROWS = frozenset({"unanswered", "unexpected"})
"""Codes of refusals that a row may have caused."""
FREE_ROUTES = frozenset(
    {
        *("/healthz", "/readyz", "/v1/me", "/v1/datasets", "/v1/datasets/{}", "/v1/datasets/{}/budget"),
        *("/v1/datasets/{}/bill", "/v1/models", "/v1/datasets/{}/quotes", "/v1/ledger/{}/entries", "/v1/access-log"),
    }
)
"""Routes that read no row and wait for no job, with the names of their parameters left out."""


ANSWERED = "2xx or 500"
"""The class of status of routes that are not free, whatever came of them."""


class Served(Protocol):
    """What is measured of a service."""

    @property
    def house(self) -> House:
        """What is declared."""
        ...

    @property
    def ledger(self) -> SqlLedger:
        """Where the bill is kept."""
        ...


class Metrics:
    """Counters of one service, and gauges that are read when they are asked for.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.request("/v1/jobs/{job_id}", 200, seconds=0.01)
    >>> metrics.request("/v1/datasets/{dataset}/explanations", 402, "budget-exceeded")
    >>> text = metrics.text().decode()
    >>> 'vitrail_requests_total{route="/v1/jobs/{job_id}",status="2xx or 500"} 1.0' in text
    True
    >>> 'vitrail_refusals_total{code="budget-exceeded"} 1.0' in text
    True
    >>> "/v1/jobs" in text.partition("vitrail_free_request_seconds")[2]
    False
    """

    def __init__(self) -> None:
        prometheus = _prometheus()
        self.registry: Any = prometheus.CollectorRegistry()
        counter, histogram = prometheus.Counter, prometheus.Histogram
        self._requests = counter(
            "vitrail_requests",
            "Requests by route and class of status.",
            ["route", "status"],
            registry=self.registry,
        )
        self._refusals = counter(
            "vitrail_refusals", "Requests that were refused, by code.", ["code"], registry=self.registry
        )
        self._seconds = histogram(
            "vitrail_free_request_seconds",
            "How long free requests took; none about rows.",
            ["route"],
            registry=self.registry,
        )
        for code in TITLES.keys() - TOLD_BY_ROWS:
            self._refusals.labels(code)

    def request(self, route: str, status: int, code: str | None = None, seconds: float | None = None) -> None:
        """Count a request.

        Parameters
        ----------
        route : str
            The template of its route, never its path, which is whatever somebody typed.
        status : int
            Of the answer.
        code : str, optional
            Of the problem it was refused with; counted if no row can have caused it.
        seconds : float, optional
            How long it took; kept if the route is free.
        """
        free = re.sub(r"\{[^}]*\}", "{}", route) in FREE_ROUTES
        kind = f"{status // 100}xx" if free or status not in (*range(200, 300), 500) else ANSWERED
        self._requests.labels(route, kind).inc()
        if code in TITLES and code not in TOLD_BY_ROWS:
            self._refusals.labels(code).inc()
        if free and seconds is not None:
            self._seconds.labels(route).observe(seconds)

    def text(self, service: Served | None = None) -> bytes:
        """Everything, as ``/metrics`` answers; with budgets and jobs of a service, as they stand now."""
        prometheus = _prometheus()
        told: bytes = prometheus.generate_latest(self.registry)
        if service is None:
            return told
        now = prometheus.CollectorRegistry()
        now.register(_Now(service))
        stands: bytes = prometheus.generate_latest(now)
        return stands + told

    @property
    def content_type(self) -> str:
        """Of what ``text`` returns."""
        return str(_prometheus().CONTENT_TYPE_LATEST)


class _Now:
    """Budgets and jobs, read when Prometheus collects."""

    def __init__(self, service: Served) -> None:
        self._service = service

    def collect(self) -> Iterator[Any]:
        """The gauges."""
        from prometheus_client.core import GaugeMetricFamily

        words = {"budget": "may ever be spent", "spent": "was spent", "remaining": "still fits in one question"}
        gauges = {
            name: GaugeMetricFamily(f"vitrail_{name}_epsilon", f"Epsilon that {meaning}.", labels=["dataset"])
            for name, meaning in words.items()
        }
        opened = self._service.ledger.accounts()
        for name, dataset in self._service.house.datasets.items():
            declared = dataset.declaration
            account = declared.account or declared.name
            spent, remaining = 0.0, declared.budget.epsilon
            if account in opened:
                statement = self._service.ledger.statement(account)
                spent, remaining = statement.spent_epsilon, statement.remaining_epsilon
            for gauge, value in (("budget", declared.budget.epsilon), ("spent", spent), ("remaining", remaining)):
                gauges[gauge].add_metric([name], value)
        yield from gauges.values()
        jobs = GaugeMetricFamily("vitrail_jobs", "Questions by state; answered and failed ones together.", labels=["state"])
        counted = _jobs_by_state(self._service.ledger)
        for state in STATES:
            jobs.add_metric([state], counted[state])
        yield jobs


def _jobs_by_state(ledger: SqlLedger) -> Tally[str]:
    with ledger.database.transaction(read_only=True) as connection:
        found = connection.execute(sql.select(JOBS.c.state, sql.func.count()).group_by(JOBS.c.state)).all()
    counted = Tally[str]()
    for state, n_jobs in found:
        counted["ended" if state in ENDED else str(state)] += int(n_jobs)
    return counted


def _prometheus() -> Any:
    try:
        import prometheus_client
    except ImportError as error:
        raise VitrailError(
            "metrics are written by prometheus-client, which is not installed: pip install 'vitrail[serve]'"
        ) from error
    return prometheus_client

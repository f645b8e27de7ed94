"""Routes for those who run a service: health and metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from fastapi import Request
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool

from ..operation.health import healthz, readyz
from ..rules import AUDITORS, PUBLIC
from .doors import json_answer, whom

if TYPE_CHECKING:
    from ..operation.metrics import Metrics
    from ..service import Service
    from .doors import Doors


def add_operation(doors: Doors, service: Service, metrics: Metrics) -> None:
    """Make the routes of health, which everybody may ask for, and of metrics, which owner and auditors may."""

    async def lives() -> Response:
        """Whether the process lives."""
        return json_answer(*healthz())

    async def ready() -> Response:
        """Whether questions would be answered."""
        return json_answer(*await run_in_threadpool(readyz, service))

    async def measured(request: Request) -> Response:
        """Budgets, jobs, refusals and requests, as Prometheus reads them; nothing that follows from rows."""
        whom(request).check_whole_house()
        return Response(await run_in_threadpool(metrics.text, service), media_type=metrics.content_type)

    doors.route("GET", "/healthz", PUBLIC, lives, in_schema=False)
    doors.route("GET", "/readyz", PUBLIC, ready, in_schema=False)
    doors.route("GET", "/metrics", AUDITORS, measured, in_schema=False, response=Response)

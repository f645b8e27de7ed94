"""The application: doors, routes, health."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import Response
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException

from ... import __version__
from ..access.access_log import AccessLog
from ..access.gate import Gate
from ..operation.metrics import Metrics
from ..problems import Problem
from ..rules import PUBLIC, Rules
from ..service import Service
from .api import add_api
from .api_access import add_access
from .doors import Doors, Through, json_answer, refused
from .operating import add_operation
from .pages import add_pages

DESCRIPTION = (
    "Explanations of machine-learning models from private data, under differential privacy, with a bill for every epsilon. "
    "Requests are JSON values, never code. Quotes are free; the same question again is free."
)


def create_app(service: Service, *, gate: Gate | None = None) -> FastAPI:
    """The application of a service.

    Parameters
    ----------
    service : Service
        Opened when the application starts, drained when it ends.
    gate : Gate, optional
        Says who asks, in place of one that is made of the house.
    """
    gate = Gate(service.house, service.ledger.database) if gate is None else gate
    access_log, metrics = AccessLog(service.house.access_log), Metrics()

    @asynccontextmanager
    async def living(app: FastAPI) -> AsyncIterator[None]:
        await run_in_threadpool(service.start)
        yield
        await run_in_threadpool(service.stop)

    app = FastAPI(
        title="Vitrail", version=__version__, description=DESCRIPTION, lifespan=living, docs_url=None, redoc_url=None,
        openapi_url=None, redirect_slashes=False,
    )  # fmt: skip
    app.state.service = service
    rules = app.state.rules = Rules()
    doors = Doors(app, rules)
    add_api(doors, service)
    add_access(doors, gate, access_log)
    add_operation(doors, service, metrics)
    doors.route("GET", "/v1/openapi.json", PUBLIC, lambda: json_answer(app.openapi()), in_schema=False)
    add_pages(doors, service, gate, access_log)
    doors.check()

    @app.exception_handler(RequestValidationError)
    async def invalid(request: Request, error: RequestValidationError) -> Response:
        said = error.errors()[0]
        where = ".".join(str(part) for part in said["loc"][1:]) or "the request"
        return refused(request, Problem("invalid", f"{where}: {said['msg'].lower()}"))

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> Response:
        code = {404: "not-found", 405: "not-found"}.get(error.status_code, "invalid")
        return refused(request, Problem(code, f"there is no {request.method} {request.url.path[:80]}"))

    @app.exception_handler(Problem)
    async def problem(request: Request, error: Problem) -> Response:
        return refused(request, error)

    app.add_middleware(Through, app=app, gate=gate, access_log=access_log, on_end=metrics.request)
    return app

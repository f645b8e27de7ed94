"""Pages of results: each stands alone, and is shut into a sandbox of its own."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache

from fastapi.responses import HTMLResponse, Response

from ...show.pages import report_script_hash


@cache
def document_headers() -> Mapping[str, str]:
    """Headers for a page of a result: it stands alone, so its style is inline, and its one script is known by its hash.

    The sandbox takes it out of the service's origin: even if something in it could run, it would have no session. The doors
    add the headers that every answer has.
    """
    policy = (
        "default-src 'none'; img-src data:; style-src 'unsafe-inline'; "
        f"script-src '{report_script_hash()}'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'self'; sandbox allow-scripts"
    )
    own = {"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin"}
    return {**own, "Content-Security-Policy": policy}


def document(html: bytes) -> Response:
    """A page of a result, for a frame of its own or for a tab."""
    return HTMLResponse(html, headers=dict(document_headers()))

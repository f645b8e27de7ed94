"""Questions that were asked: their list, the state of each, and the answer in a frame of its own."""

from __future__ import annotations

from starlette.responses import Response

from ...rules import ASKERS
from ..documents import document
from . import views, words
from .site import Route, Visit


def jobs(visit: Visit) -> Response:
    """All questions of this person, the newest first; the owner sees everybody's."""
    listed = [views.job(job) for job in visit.service.jobs(visit.who)]
    listed.sort(key=lambda job: str(job["created"]), reverse=True)
    return visit.page("jobs.html", jobs=listed, others=visit.who.role == "owner")


def job(visit: Visit) -> Response:
    """One question: what became of it."""
    found = visit.service.job(visit.who, visit.part("job_id"))
    asked, finished = views.asked(found, visit.who.name), found.state in words.FINISHED
    return visit.page("job.html", job=views.job(found), asked=asked, finished=finished)


def answer(visit: Visit) -> Response:
    """The answer as the page that also stands alone."""
    return document(visit.service.page(visit.who, visit.part("job_id")))


ROUTES: tuple[Route, ...] = (
    ("GET", "/jobs", ASKERS, jobs),
    ("GET", "/jobs/{job_id}", ASKERS, job),
    ("GET", "/jobs/{job_id}/page", ASKERS, answer),
)

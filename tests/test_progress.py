"""One bar for a conversation: its phases, its pace by public numbers alone, and silence where nobody looks."""

import io
import os
import pty
import re
import select
import subprocess
import sys

import numpy as np
import pytest

import vitrail as vt
from vitrail import progress as bars
from vitrail.progress import BETWEEN, one_bar, progress


class Shown:
    """Stands on the screen in place of rich's bar, and remembers what it was told."""

    def __init__(self, label):
        self.task_ids, self.told = [0], [(label, 0)]

    def update(self, task, completed, description=None):
        self.told.append((description, completed))

    def stop(self):
        self.told.append("off")


@pytest.fixture
def screens(monkeypatch):
    """The bars that were drawn, at once and wherever standard error leads."""
    drawn = []

    def draw(label, screen):
        assert isinstance(screen, io.TextIOWrapper)
        drawn.append(Shown(label))
        return drawn[-1]

    nowhere = os.open(os.devnull, os.O_WRONLY)
    monkeypatch.setattr(bars, "screen_of_stderr", lambda: nowhere)
    monkeypatch.setattr("vitrail.nothing_escapes.screen_of_stderr", lambda: nowhere)
    monkeypatch.setattr(bars, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(bars, "_drawn", draw)
    yield drawn
    os.close(nowhere)


def test_phases_share_one_bar(screens):
    with one_bar("all") as phase:
        with phase("first", 0.25), progress("summing", 4) as advance:
            for _ in range(4):
                advance(1)
        with phase("second", 0.75):
            for label in ("one walk", "another"):  # a phase may walk over the rows twice
                with progress(label, 2) as advance:
                    advance(1)
    (only,) = screens
    first = [("first", done) for done in (0, 0, 6, 12, 18, 25)]
    assert only.told == [
        *first,
        (BETWEEN, 25),
        ("second", 25),
        ("second", 62),
        ("second", 62),
        (BETWEEN, 100),
        (None, 100),
        "off",
    ]


def test_without_a_whole_every_walk_has_a_bar_of_its_own(screens):
    for label in ("one", "two"):
        with progress(label, 3) as advance:
            advance(2)
            advance(5)  # more than was declared
    assert [shown.told for shown in screens] == [
        [(label, 0), (label, 66), (label, 100), (None, 100), "off"] for label in ("one", "two")
    ]


def test_a_whole_inside_a_whole_is_a_part_of_it(screens):
    with (
        one_bar("outer") as phase,
        phase("pane", 0.5),
        one_bar("inner") as inner,
        inner("rows", 1.0),
        progress("summing", 1) as advance,
    ):
        advance(1)
    (only,) = screens
    assert {label for label, _ in only.told[:-2]} == {"pane", BETWEEN}
    with progress("afterwards", 1) as advance:  # the bar was closed
        advance(1)
    assert len(screens) == 2


def test_a_bar_is_taken_off_when_something_fails(screens):
    with pytest.raises(ZeroDivisionError), one_bar("all") as phase, phase("first", 0.5):
        raise ZeroDivisionError
    assert screens[0].told[-1] == "off"


SCHEMA = vt.Schema({"age": vt.Numeric(0, 60, integer=True), "pay": vt.Numeric(0, 1)})
MODEL = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0] * x[:, 1], range=(0, 1), name="wealth")


def released(n_rows):
    draw = np.random.default_rng(0)
    rows = {"age": draw.integers(0, 61, n_rows), "pay": draw.random(n_rows)}
    data = vt.PrivateData(
        rows, SCHEMA, name="people", n_rows_public=2000, budget=vt.Budget(9, 1e-6), ledger="memory", block_rows=512
    )
    return vt.release(data, MODEL, epsilon=4.0, parts=["rows", "pdp"])


@pytest.mark.usefixtures("planted_noise", "curves_in_a_hurry")
def test_a_pane_has_one_bar_with_its_questions_by_name(screens):
    released(2000)
    (only,) = screens
    told = only.told[1:-2]
    labels = list(dict.fromkeys(label for label, _ in told))
    assert labels[0] == "rehearsal on public rows"
    assert BETWEEN in labels
    assert any(label.startswith("private rows") for label in labels)
    assert len(labels) >= 4
    done = [per_cent for _, per_cent in told]
    assert done == sorted(done)
    assert done[-1] == 100


@pytest.mark.usefixtures("planted_noise", "curves_in_a_hurry")
def test_the_bar_of_more_rows_stands_at_the_same_places(screens):
    """Blocks are as many as there are rows; where a phase begins and ends, and what it is called, no row decides."""
    released(2000)
    released(2001)
    ends = [[told for told in shown.told[:-2] if told[0] == BETWEEN] for shown in screens]
    assert ends[0] == ends[1]


def test_in_a_terminal_phases_and_the_time_left_are_seen():
    program = """
import time
from vitrail import progress as bars
bars.PATIENCE_SECONDS = 0.0
with bars.one_bar("report") as phase:
    with phase("histograms [of] age", 0.5), bars.progress("summing", 4) as advance:
        for _ in range(4):
            time.sleep(0.15); advance(1)
    with phase("importance", 0.5):
        time.sleep(0.3)
"""
    leader, follower = pty.openpty()
    child = subprocess.Popen(
        [sys.executable, "-c", program], stdout=follower, stderr=follower, env={**os.environ, "TERM": "xterm"}
    )
    os.close(follower)
    shown = b""
    while select.select([leader], [], [], 60)[0]:
        try:
            piece = os.read(leader, 4096)
        except OSError:  # Linux says so when the other end is closed
            break
        if not piece:
            break
        shown += piece
    assert child.wait(10) == 0
    os.close(leader)
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown.decode())
    assert "histograms [of] age" in text
    assert "importance" in text
    assert re.search(r"\d%", text)
    assert re.search(r"\d:\d\d:\d\d", text)


def test_a_pipe_sees_nothing():
    program = (
        "from vitrail import progress as bars\nbars.PATIENCE_SECONDS = -1.0\n"
        "with bars.one_bar('report') as phase, phase('a', 1.0), bars.progress('b', 1) as advance:\n    advance(1)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")

"""One bar for a conversation: its phases, its pace by public numbers alone, and silence where nobody looks."""

import io
import json
import os
import pty
import re
import select
import subprocess
import sys
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import vitrail as vt
from vitrail import progress as bars
from vitrail.progress import BETWEEN, one_bar, progress, time_left


class Shown:
    """Stands on the screen in place of rich's bar, and remembers what it was told."""

    def __init__(self):
        self.told, self.left = [], []

    def show(self, label, per_cent, left):
        self.told.append((label, per_cent))
        self.left.append(left)

    def remove(self):
        self.told.append("off")


@pytest.fixture
def screens(monkeypatch):
    """The bars that were drawn, at once and wherever standard error leads."""
    drawn = []

    def draw(screen):
        assert isinstance(screen, io.TextIOWrapper)
        drawn.append(Shown())
        return drawn[-1]

    nowhere = os.open(os.devnull, os.O_WRONLY)
    monkeypatch.setattr(bars, "screen_of_stderr", lambda: nowhere)
    monkeypatch.setattr("vitrail.nothing_escapes.screen_of_stderr", lambda: nowhere)
    monkeypatch.setattr(bars, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(bars, "SECONDS_BETWEEN_UPDATES", 0.0)
    monkeypatch.setattr(bars, "_InTerminal", draw)
    yield drawn
    os.close(nowhere)


@pytest.fixture
def clock(monkeypatch):
    """A clock that stands still until ``now`` is set."""
    stands = SimpleNamespace(now=0.0)
    monkeypatch.setattr(bars, "time", SimpleNamespace(monotonic=lambda: stands.now))
    return stands


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
    first = [("first", done) for done in (0, 6, 12, 18, 25)]
    assert only.told == [*first, (BETWEEN, 25), ("second", 25), ("second", 62), (BETWEEN, 100), "off"]


def test_without_a_whole_every_walk_has_a_bar_of_its_own(screens):
    for label in ("one", "two"):
        with progress(label, 3) as advance:
            advance(2)
            advance(5)  # more than was declared
    assert [shown.told for shown in screens] == [[(label, 66), (label, 100), "off"] for label in ("one", "two")]


def test_a_walk_inside_a_walk_is_not_seen(screens):
    with progress("conversations", 2) as advance:
        for _ in range(2):
            with one_bar("a question") as phase, phase("rows", 1.0), progress("summing", 1) as inner:
                inner(1)
            with progress("summing", 1) as inner:
                inner(1)
            advance(1)
    (only,) = screens
    assert only.told == [("conversations", 50), ("conversations", 100), "off"]


def test_updates_are_few_and_the_name_of_a_phase_is_never_late(screens, clock, monkeypatch):
    monkeypatch.setattr(bars, "SECONDS_BETWEEN_UPDATES", 0.25)
    with one_bar("all") as phase:
        with phase("first", 0.5), progress("summing", 64) as advance:
            for _ in range(64):
                clock.now += 1 / 64
                advance(1)
        with phase("second", 0.5):
            pass
    (only,) = screens
    first = [("first", done) for done in (0, 12, 25, 37, 50)]
    assert only.told == [*first, (BETWEEN, 50), ("second", 50), (BETWEEN, 100), "off"]


def test_what_came_too_soon_is_shown_later(screens, clock, monkeypatch):
    monkeypatch.setattr(bars, "SECONDS_BETWEEN_UPDATES", 0.25)
    with progress("summing", 1000) as advance:
        advance(100)
        advance(100)  # too soon
        clock.now += 1.0
        advance(1)
        clock.now += 1.0
        advance(1)  # not a per cent more
    assert screens[0].told == [("summing", 10), ("summing", 20), "off"]


def test_the_time_left_is_by_the_clock_and_the_shares(screens, clock):
    with one_bar("all") as phase:
        with phase("rehearsal", 0.0):
            clock.now = 1000.0  # says nothing about the questions
        with phase("first", 0.02):
            clock.now += 1.0
        with phase("second", 0.18):
            clock.now += 9.0
        with phase("third", 0.8):
            clock.now += 40.0
    (only,) = screens
    assert dict(zip(only.told[:-1], only.left, strict=True)) == {
        ("rehearsal", 0): "",
        (BETWEEN, 0): "",
        ("first", 0): "",
        (BETWEEN, 2): "",
        ("second", 2): "",
        (BETWEEN, 20): "about 40 s left",
        ("third", 20): "about 40 s left",
        (BETWEEN, 100): "",
    }


@pytest.mark.parametrize(
    ("elapsed", "per_cent", "said"),
    [
        (60.0, 2, ""),
        (1.9, 50, ""),
        (3.0, 3, "about 2 min left"),
        (2.0, 50, "about 2 s left"),
        (60.0, 50, "about 60 s left"),
        (60.5, 50, "about 2 min left"),
        (3540.0, 50, "about 59 min left"),
        (3541.0, 50, "about 1 h 0 min left"),
        (9000.0, 50, "about 2 h 30 min left"),
        (9000.0, 100, ""),
    ],
)
def test_the_time_left_in_words(elapsed, per_cent, said):
    assert time_left(elapsed, per_cent) == said


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
    assert {label for label, _ in only.told[:-1]} == {"pane", BETWEEN}
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
    told = only.told[:-1]
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
    ends = [[told for told in shown.told[:-1] if told[0] == BETWEEN] for shown in screens]
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
    assert re.search(r"about \d+ s left", text)


def test_a_pipe_sees_nothing():
    program = (
        "from vitrail import progress as bars\nbars.PATIENCE_SECONDS = -1.0\n"
        "with bars.one_bar('report') as phase, phase('a', 1.0), bars.progress('b', 1) as advance:\n    advance(1)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"", b"")


# In notebooks


@pytest.fixture
def kernel(monkeypatch):
    """A stand-in for IPython in a kernel: ``displays`` are all displays, each with all that it ever showed."""
    stand_in, displaying = ModuleType("IPython"), ModuleType("IPython.display")
    shell = SimpleNamespace(kernel=object(), displays=[])

    def display(shown, raw, display_id):
        assert (raw, display_id) == (True, True)
        shell.displays.append([shown])

        def update(shown, raw):
            assert raw
            shell.displays[-1].append(shown)

        return SimpleNamespace(update=update)

    stand_in.get_ipython, displaying.display = lambda: shell, display
    monkeypatch.setitem(sys.modules, "IPython", stand_in)
    monkeypatch.setitem(sys.modules, "IPython.display", displaying)
    monkeypatch.setattr(bars, "screen_of_stderr", lambda: None)
    monkeypatch.setattr(bars, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(bars, "SECONDS_BETWEEN_UPDATES", 0.0)
    return shell


NOTHING = {"text/plain": "", "text/html": ""}


def test_a_notebook_has_one_display_and_nothing_of_it_remains(kernel, clock):
    with one_bar("all") as phase, phase("<b>age</b> & pay", 0.5), progress("summing", 2) as advance:
        clock.now += 10.0
        advance(1)
    ((begun, middle, between, removed),) = kernel.displays
    assert begun["text/plain"] == "<b>age</b> & pay: 0 %"
    assert middle == {
        "text/plain": "<b>age</b> & pay: 25 %, about 30 s left",
        "text/html": '<label>&lt;b&gt;age&lt;/b&gt; &amp; pay <progress max="100" value="25"></progress>'
        " 25 %, about 30 s left</label>",
    }
    assert between["text/plain"].startswith(f"{BETWEEN}: 50 %")
    assert removed == NOTHING


def test_a_notebook_keeps_no_bar_of_what_fails(kernel):
    with pytest.raises(ZeroDivisionError), one_bar("all") as phase, phase("first", 0.5):
        raise ZeroDivisionError
    assert kernel.displays[0][-1] == NOTHING


def test_short_work_shows_nothing_in_a_notebook(kernel, clock, monkeypatch):
    monkeypatch.setattr(bars, "PATIENCE_SECONDS", 2.0)
    with progress("summing", 2) as advance:
        clock.now += 2.0
        advance(2)
    assert kernel.displays == []


def test_a_bar_that_cannot_be_shown_harms_nothing(kernel, monkeypatch):
    def gone(*_, **__):
        raise OSError("the socket is closed")

    monkeypatch.setattr(sys.modules["IPython.display"], "display", gone)
    with progress("summing", 1) as advance:
        advance(1)


def test_a_shell_without_a_kernel_is_no_notebook(kernel):
    kernel.kernel = None
    with progress("summing", 1) as advance:
        advance(1)
    assert kernel.displays == []


def test_ipython_is_not_imported_for_a_bar():
    program = (
        "import sys\nfrom vitrail import progress as bars\nbars.PATIENCE_SECONDS = -1.0\n"
        "with bars.progress('b', 1) as advance:\n    advance(1)\n"
        "assert not [name for name in sys.modules if name.split('.')[0] in ('IPython', 'ipykernel')]"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


PRIVATE_RELEASE = """
import os, sys, time, warnings
import numpy as np
from IPython.display import clear_output, display
import vitrail as vt
import vitrail.progress

vitrail.progress.PATIENCE_SECONDS = 0.3
read = 0

def model(x):
    global read
    if (x[:, 0] == 0.3).any():
        read += 1
        print("SECRET"); print("SECRET", file=sys.stderr); warnings.warn("SECRET")
        for descriptor in (1, 2):
            os.write(descriptor, b"SECRET")
        display("SECRET"); clear_output()
        time.sleep(0.25)
    return x[:, 0]

data = vt.PrivateData({"x": np.full(512, 0.3)}, vt.Schema({"x": vt.Numeric(0, 1)}), name="x", n_rows_public=512,
    budget=vt.Budget(1, 1e-6), ledger="memory", block_rows=64)
one = vt.Model(model, range=(0, 1))
data.ask(vt.BoundedSum(lambda block: block.predictions(one), 1, 1.0), epsilon=0.5)
print("calls with private rows:", read)
display("seen again")
"""


def test_in_a_real_notebook_the_bar_is_shown_and_what_a_model_prints_is_not(tmp_path, monkeypatch):
    pytest.importorskip("ipykernel")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    for folder in ("IPYTHONDIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(folder, str(tmp_path / folder))
    sent = []

    class Watched(nbclient.NotebookClient):
        def process_message(self, msg, cell, cell_index):
            if msg["msg_type"] not in ("status", "execute_input"):
                sent.append((msg["msg_type"], json.loads(json.dumps(msg["content"]))))
            return super().process_message(msg, cell, cell_index)

    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(PRIVATE_RELEASE)])
    Watched(notebook, timeout=60, kernel_name="python3").execute()
    said = json.dumps(sent)
    assert "SECRET" not in said
    assert "calls with private rows: 8" in said
    kinds = [kind for kind, _ in sent]
    assert kinds[0] == "display_data"
    assert set(kinds[1:-2]) == {"update_display_data"}
    assert kinds[-2:] == ["stream", "display_data"]
    assert "seen again" in sent[-1][1]["data"]["text/plain"]
    assert len({content["transient"]["display_id"] for _, content in sent[:-2]}) == 1
    *shown, last = [content["data"] for _, content in sent[:-2]]
    assert all(re.fullmatch(r"summing: \d+ %(, about \d+ s left)?", data["text/plain"]) for data in shown)
    assert any("left" in data["text/plain"] for data in shown)
    assert all("<progress " in data["text/html"] for data in shown)
    assert last == NOTHING
    bar, printed, _ = notebook.cells[0].outputs
    assert bar["data"] == NOTHING
    assert printed["output_type"] == "stream"

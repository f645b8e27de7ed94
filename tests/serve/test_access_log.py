"""The access log: every call a line, chained; damage is found, a crash loses nothing, and no secret is in it."""

import hashlib
import json
import os
import signal
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from vitrail.errors import VitrailError
from vitrail.nothing_escapes import hushed
from vitrail.serve.access.access_log import START, AccessLog, verify
from vitrail.serve.principal import Principal

ALICE = Principal("alice", "analyst", None, may_buy=True, credential="t_1")
WHEN = datetime(2026, 11, 18, 12, 0, 7, 999_999, tzinfo=UTC)
FIELDS = ["n", "time", "person", "role", "credential", "method", "route", "parameters", "status", "previous"]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "access.jsonl"


@pytest.fixture
def log(path):
    with closing(AccessLog(path)) as opened:
        yield opened


def filled(path, calls=6):
    with closing(AccessLog(path)) as log:
        for number in range(calls):
            log.write(ALICE, "GET", "/v1/jobs/{job_id}", 200, {"job_id": f"j{number}"})
    return path.read_bytes().splitlines(keepends=True)


def test_a_line_says_who_called_what_and_nothing_else(log, path):
    log.write(ALICE, "POST", "/v1/datasets/{dataset}/quotes", 200, {"dataset": "census", "age": "47", "q": "x"}, WHEN)
    log.write(None, "GET", "/v1/me", 401, now=WHEN.astimezone(timezone(timedelta(hours=9))))
    first, second = (json.loads(line) for line in path.read_text().splitlines())
    assert list(first) == list(second) == FIELDS
    assert first == {
        "n": 0,
        "time": "2026-11-18T12:00:07Z",
        "person": "alice",
        "role": "analyst",
        "credential": "t_1",
        "method": "POST",
        "route": "/v1/datasets/{dataset}/quotes",
        "parameters": {"dataset": "census"},
        "status": 200,
        "previous": START,
    }
    assert (second["person"], second["role"], second["credential"], second["time"]) == (None, None, None, first["time"])
    assert log.tail() == [first, second]


@pytest.mark.parametrize("value", ["a/../b", "x" * 101, "", "a\nb", 'a"b', "<script>", "?q=1", "\ud800", "\x00"])
def test_what_looks_like_no_name_is_not_kept(log, path, value):
    log.write(ALICE, "GET", "/v1/panes/{pane_id}", 404, {"pane_id": value})
    assert json.loads(path.read_bytes())["parameters"] == {"pane_id": "?"}
    assert verify(path).ok


def test_a_made_up_method_is_not_kept(log):
    log.write(None, "ALICE-IS-ILL", "", 405)
    assert log.tail()[0]["method"] == "?"


def test_it_is_written_while_the_process_is_silent(log, path, capfd):
    def work():
        print("a private row", flush=True)
        log.write(ALICE, "GET", "/v1/me", 200)

    hushed(work)
    assert "private" not in "".join(capfd.readouterr())
    assert verify(path).lines == 1


def test_only_its_owner_reads_the_file(log, path):
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_chain_goes_on_when_it_is_opened_again(path):
    first = filled(path, 3)
    again = filled(path, 3)
    assert again[:3] == first
    assert [json.loads(line)["n"] for line in again] == list(range(6))
    assert (verify(path).ok, verify(path).lines) == (True, 6)


def test_a_log_of_no_lines_holds(log, path):
    assert verify(path) == verify(path, START)
    assert (verify(path).ok, verify(path).lines, verify(path).head, log.tail()) == (True, 0, START, [])


DAMAGE = {
    "removed": lambda lines, at: lines[:at] + lines[at + 1 :],
    "changed": lambda lines, at: [*lines[:at], lines[at].replace(b'"status":200', b'"status":404'), *lines[at + 1 :]],
    "another person": lambda lines, at: [*lines[:at], lines[at].replace(b"alice", b"bobby"), *lines[at + 1 :]],
    "doubled": lambda lines, at: [*lines[: at + 1], *lines[at:]],
    "put in": lambda lines, at: [*lines[:at], lines[at].replace(b"alice", b"bobby"), *lines[at:]],
    "exchanged": lambda lines, at: [*lines[:at], lines[at + 1], lines[at], *lines[at + 2 :]],
    "blackened": lambda lines, at: [*lines[:at], b"#" * (len(lines[at]) - 1) + b"\n", *lines[at + 1 :]],
    "an empty line": lambda lines, at: [*lines[:at], b"\n", *lines[at:]],
    "no line": lambda lines, at: [*lines[:at], b'{"person":"eve"}\n', *lines[at:]],
    "the beginning cut off": lambda lines, at: lines[at + 1 :],
}


@pytest.mark.parametrize("at", range(5))
@pytest.mark.parametrize("damage", DAMAGE)
def test_damage_is_found(path, damage, at):
    lines = filled(path)
    assert verify(path).ok
    path.write_bytes(b"".join(DAMAGE[damage](lines, at)))
    found = verify(path)
    assert not found.ok
    assert found.problems[0]
    with closing(AccessLog(path)) as log:  # a service that starts on it does not hide it
        log.write(ALICE, "GET", "/v1/me", 200)
    assert not verify(path).ok


def test_a_chain_that_was_made_anew_still_has_the_old_numbers(path):
    lines = [json.loads(line) for line in filled(path)]
    del lines[3]
    previous, forged = START, b""
    for line in lines:
        raw = json.dumps({**line, "previous": previous}).encode()
        previous, forged = hashlib.sha256(raw).hexdigest(), forged + raw + b"\n"
    path.write_bytes(forged)
    assert verify(path).problems == ("line 4 has the number 4, and the one before it 2",)


def test_a_line_that_is_removed_before_a_torn_one_is_found(path):
    lines = filled(path)
    path.write_bytes(b"".join(lines[:3]) + lines[3][:30])
    filled(path, 1)
    assert verify(path).ok
    damaged = path.read_bytes().splitlines(keepends=True)
    del damaged[2]
    path.write_bytes(b"".join(damaged))
    assert not verify(path).ok


def test_where_the_damage_is_is_said(path):
    lines = filled(path)
    path.write_bytes(b"".join(DAMAGE["changed"](lines, 2)))
    assert verify(path).problems == ("line 4 does not follow the one before it: a line was changed, removed or put in",)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_changed_byte_is_found(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("log") / "access.jsonl"
    content = b"".join(filled(path, 4))
    head = verify(path).head
    place = data.draw(st.integers(0, len(content) - 2))  # the last byte ends the last line, and says nothing
    byte = data.draw(st.integers(0, 255).filter(lambda one: one != content[place]))
    path.write_bytes(content[:place] + bytes([byte]) + content[place + 1 :])
    assert not verify(path, head).ok


def test_a_cut_end_is_found_by_who_noted_the_head(path):
    lines = filled(path)
    noted = verify(path)
    filled(path, 2)
    assert verify(path, noted.head).ok, "later lines may be there"
    path.write_bytes(b"".join(lines[:-1]))
    assert verify(path).ok, "the chain alone cannot know"
    assert "does not pass through the head" in verify(path, noted.head).problems[0]
    path.write_bytes(b"")
    assert not verify(path, noted.head).ok


def test_a_half_written_line_is_closed_by_one_that_says_so(path):
    """Whichever byte of the last line was the last one written."""
    lines = filled(path, 3)
    whole = b"".join(lines[:2])
    for length in range(1, len(lines[2]) - 1):
        torn = lines[2][:length]
        path.write_bytes(whole + torn)
        assert "half a line" in verify(path).problems[0]
        with closing(AccessLog(path)) as log:
            log.write(ALICE, "GET", "/v1/me", 200)
            marked = log.tail()[2]
        assert path.read_bytes().startswith(whole + torn + b"\n"), "what was written stays"
        assert (marked["torn_bytes"], "person" in marked) == (length, False)
        assert (verify(path).problems, verify(path).lines) == ((), 4)


def test_a_line_that_lacks_its_end_only_is_a_line(path):
    content = b"".join(filled(path, 3))
    path.write_bytes(content[:-1])
    assert verify(path).lines == 3
    with closing(AccessLog(path)) as log:
        log.write(ALICE, "GET", "/v1/me", 200)
        assert [line["n"] for line in log.tail()] == [0, 1, 2, 3]
    assert (verify(path).ok, path.read_bytes().count(b"\n")) == (True, 4)


def test_a_crash_while_a_crash_is_told(path):
    """The line that closes a torn one is torn as well, and the next one, and there are empty lines."""
    lines = filled(path, 3)
    path.write_bytes(b"".join(lines[:2]) + lines[2][:20] + b'\n{"n":2,"torn"\n\n{"n":')
    filled(path, 1)
    assert (verify(path).problems, verify(path).lines) == ((), 4)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'{"n":2,"torn"\n', b""))
    assert "does not account for it" in verify(path).problems[0], "what was torn is covered by the hash"
    path.write_bytes(b"".join(line for line in content.splitlines(keepends=True) if line.startswith(b"{") and b"}" in line))
    assert "no longer there" in verify(path).problems[0]


def test_a_long_torn_end_is_read_over(path):
    filled(path, 3)
    with path.open("ab") as file:
        file.write(b"#" * 200_000)
    filled(path, 2)
    assert (verify(path).problems, verify(path).lines) == ((), 6)


WRITER = """
import sys
from pathlib import Path
from vitrail.serve.access.access_log import AccessLog
from vitrail.serve.principal import Principal
log = AccessLog(Path(sys.argv[1]))
who = Principal(sys.argv[2], "analyst", None, may_buy=True, credential="t_1")
print("ready", flush=True)
for number in range(int(sys.argv[3])):
    log.write(who, "GET", "/v1/jobs/{job_id}", 200, {"job_id": str(number)})
"""


def writer(path, name, calls):
    return subprocess.Popen([sys.executable, "-c", WRITER, str(path), name, str(calls)], stdout=subprocess.PIPE)


def test_two_servers_write_one_chain(path):
    writers = [writer(path, name, 300) for name in ("alice", "bob")]
    assert [one.wait() for one in writers] == [0, 0]
    for one in writers:
        one.stdout.close()
    assert (verify(path).problems, verify(path).lines) == ((), 600)
    calls = [(line["person"], int(line["parameters"]["job_id"])) for line in map(json.loads, path.read_text().splitlines())]
    for name in ("alice", "bob"):
        assert [number for person, number in calls if person == name] == list(range(300)), "none lost, in order"


def test_a_server_that_is_killed_leaves_a_log_that_goes_on(path):
    one = writer(path, "alice", 10**9)
    assert one.stdout.readline() == b"ready\n"
    while path.stat().st_size < 20_000:
        assert one.poll() is None
    one.send_signal(signal.SIGKILL)
    one.wait()
    one.stdout.close()
    before = path.read_bytes()
    filled(path, 2)
    assert path.read_bytes().startswith(before)
    assert verify(path).problems == ()


def test_threads_and_several_logs_on_one_file(path):
    with closing(AccessLog(path)) as one, closing(AccessLog(path)) as two, ThreadPoolExecutor(6) as pool:
        list(pool.map(lambda number: (one, two)[number % 2].write(ALICE, "GET", "/v1/me", 200 + number), range(200)))
        assert {line["status"] for line in one.tail(limit=500)} == set(range(200, 400))
        assert one.tail(limit=500) == two.tail(limit=500)
    assert (verify(path).problems, verify(path).lines) == ((), 200)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are not forked here")
def test_a_forked_child_writes_to_the_same_chain(log, path):
    """Under a program of its own: the test's process has threads."""
    program = (
        WRITER
        + "\nimport os\nchild = os.fork()\n"
        + (
            "for _ in range(100):\n    log.write(who, 'GET', '/v1/me', 200)\n"
            "if child:\n    sys.exit(os.waitpid(child, 0)[1])\n"
        )
    )
    subprocess.run([sys.executable, "-c", program, str(path), "alice", "5"], check=True, stdout=subprocess.DEVNULL)
    assert (verify(path).problems, verify(path).lines) == ((), 205)


def test_a_log_that_is_moved_away_is_begun_anew(log, path):
    log.write(ALICE, "GET", "/v1/me", 200)
    kept = path.rename(path.with_suffix(".1"))
    log.write(ALICE, "GET", "/v1/me", 201)
    path.unlink()
    log.write(ALICE, "GET", "/v1/me", 202)
    assert (verify(kept).ok, verify(kept).lines, verify(path).ok) == (True, 1, True)
    assert [line["status"] for line in log.tail()] == [202]


def test_the_tail_is_read_page_by_page(log, path):
    for number in range(900):
        log.write(ALICE, "GET", "/v1/jobs/{job_id}", 200, {"job_id": str(number)})
        if number == 500:
            with path.open("ab") as file:
                file.write(b"#" * 1000)
    assert path.stat().st_size > 1 << 17, "long enough to be searched by halves"
    every = [json.loads(line) for line in path.read_bytes().splitlines() if not line.startswith(b"#")]
    assert [line["n"] for line in every] == list(range(901))
    for after in (-1, 0, 17, 499, 500, 501, 502, 850, 899):
        assert log.tail(after, 40) == every[after + 1 : after + 41]
    assert log.tail(900) == log.tail(10**9) == []
    assert log.tail() == every[-100:]
    assert log.tail(limit=7) == every[-7:]
    assert log.tail(-1, 10**9) == every[:1000]
    assert log.tail(3, 0) == every[4:5], "at least one"
    pages, after = [], -1
    while page := log.tail(after, 64):
        pages, after = pages + page, page[-1]["n"]
    assert pages == every


def test_what_cannot_be_written_is_told(tmp_path, log):
    with pytest.raises(VitrailError, match=r"cannot be opened: Is a directory\. Name a file"):
        AccessLog(tmp_path)
    log.close()
    log.close()
    with pytest.raises(VitrailError, match="was closed; nothing is answered without it"):
        log.write(ALICE, "GET", "/v1/me", 200)
    if Path("/dev/full").exists():
        with closing(AccessLog(Path("/dev/full"))) as full, pytest.raises(VitrailError, match="cannot be written: No space"):
            full.write(ALICE, "GET", "/v1/me", 200)

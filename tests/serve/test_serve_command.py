"""`vitrail serve`: a house from nothing, tokens, backups, and a real process from its first token to its end by a signal."""

import json
import re
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path

import pytest
from typer.main import get_command

import command_line
import serve_setup
from vitrail.cli.serve import app
from vitrail.errors import InvalidInput
from vitrail.serve.house import read_house
from vitrail.serve.operation import new_house
from vitrail.serve.operation.running import NEEDED, address_of, existing_ledger, opened_tokens

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return lambda *words: command_line.vitrail(monkeypatch, capsys, "serve", *words)


@pytest.fixture
def house(tmp_path):
    return serve_setup.write_house(tmp_path)


# --- a house -------------------------------------------------------------------------------------------------------------


def test_a_house_is_written_from_a_declaration_and_a_model(run, tmp_path):
    serve_setup.write_house(tmp_path).unlink()
    made = run("init", "staff.toml", "--model", "score.onnx", "--person", "alice=analyst", "--person", "audrey=auditor")
    assert made.code == 0, made.err
    assert "vitrail serve house.toml --check" in made.out
    written = read_house(tmp_path / "house.toml")
    assert written.models["score"].sha256 == new_house.sha256_of(tmp_path / "score.onnx")
    assert {name: person.role for name, person in written.people.items()} == {"alice": "analyst", "audrey": "auditor"}
    checked = run("house.toml", "--check")
    assert checked.code == 0, checked.err
    for said in ("dataset 'staff'", "model 'score'", "analyst 'alice'", "owner 'owner'", "made at the first start"):
        assert said in checked.out
    assert not (tmp_path / "ledger.db").exists()  # --check starts and writes nothing
    again = run("init", "staff.toml")
    assert again.code == 2
    assert "is there already" in again.err


def test_a_house_lies_where_it_likes(run, tmp_path):
    serve_setup.write_house(tmp_path)
    (tmp_path / "services").mkdir()
    assert run("init", "staff.toml", "--model", "score.onnx", "-o", "services/mine.toml").code == 0
    assert 'file = "../score.onnx"' in (tmp_path / "services" / "mine.toml").read_text()
    assert run("services/mine.toml", "--check").code == 0


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["init", "staf.toml", "-o", "h.toml"], "staff.toml"),
        (["init", "staff.toml", "--model", "score.pkl", "-o", "h.toml"], "ONNX"),
        (["init", "staff.toml", "--model", "scor.onnx", "-o", "h.toml"], "score.onnx"),
        (["init", "staff.toml", "--person", "alice=boss", "-o", "h.toml"], "analyst, reader and auditor"),
        (["init", "staff.toml", "--person", "=analyst", "-o", "h.toml"], "alice=analyst"),
        (["hous.toml"], "house.toml"),
        (["house.toml", "--demo"], "--demo"),
        (["--check"], "give a house"),
        (["token", "house.toml", "alicia"], "alice"),
        (["token", "house.toml", "alice", "--dataset", "staf"], "staff"),
        (["backup", "house.toml", "copy"], "no ledger"),
    ],
)
def test_mistakes_are_sentences(run, house, tmp_path, words, sentence):
    (tmp_path / "score.pkl").write_bytes(b"")
    ran = run(*words)
    assert ran.code == 2
    assert sentence in ran.err
    assert ran.err.startswith("Error: ")
    assert not (tmp_path / "h.toml").exists()


def test_a_changed_model_is_refused_with_its_hash(run, house, tmp_path):
    with (tmp_path / "score.onnx").open("ab") as file:
        file.write(b"\0")
    ran = run("house.toml", "--check")
    assert ran.code == 2
    assert "is not the one that was approved" in ran.err
    assert new_house.sha256_of(tmp_path / "score.onnx") in ran.err


def test_a_ledger_that_cannot_be_used_is_told_by_the_check(run, house, tmp_path):
    (tmp_path / "ledger.db").write_bytes(b"no database at all, and longer than a header of one would be" * 99)
    ran = run("house.toml", "--check")
    assert ran.code == 2
    assert "is no ledger" in ran.err


def test_tokens_that_would_travel_in_the_clear_are_warned_of(run, house):
    assert "in the clear" in run("house.toml", "--check", "--host", "0.0.0.0").out
    assert "in the clear" not in run("house.toml", "--check").out


# --- tokens and backups --------------------------------------------------------------------------------------------------


def test_a_token_is_printed_alone_and_is_good(run, house):
    made = run("token", "house.toml", "alice", "--days", "3", "--label", "laptop", "--no-buy")
    assert made.code == 0, made.err
    secret = made.out.strip()
    with opened_tokens(read_house(house)) as tokens:
        principal = tokens.principal(secret)
        (line,) = tokens.lines()
    assert (principal.name, principal.role, principal.may_buy) == ("alice", "analyst", False)
    assert line.label == "laptop"
    assert line.expires[:10] in made.err
    assert secret not in made.err


def test_a_backup_prints_the_command_that_verifies_it(run, house, tmp_path, monkeypatch, capsys):
    with serve_setup.serving(house) as service:
        alice = serve_setup.person("alice")
        serve_setup.finished(service, alice, service.submit(alice, "staff", {"explainer": "marginals", "epsilon": 0.5}).id)
    made = run("backup", "house.toml", "monday")
    assert made.code == 0, made.err
    command = shlex.split(made.out.splitlines()[-1])
    assert command[:3] == ["vitrail", "ledger", "verify"]
    verified = command_line.vitrail(monkeypatch, capsys, *command[1:])
    assert verified.code == 0, verified.out
    assert "The ledger holds." in verified.out
    forged = [word.replace("staff=", "staff=00") for word in command[1:]]
    assert command_line.vitrail(monkeypatch, capsys, *forged).code == 1
    assert run("backup", "house.toml", "monday").code == 2


# --- without the extra ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NEEDED)
def test_what_is_not_installed_is_named_with_the_extra(run, house, monkeypatch, name):
    monkeypatch.setitem(sys.modules, name, None)
    ran = run("house.toml")
    assert ran.code == 2
    assert "pip install 'vitrail[serve]'" in ran.err


@pytest.mark.parametrize("words", [["--help"], ["serve", "--help"]])
def test_help_needs_none_of_it(words):
    hidden = f"import sys; sys.modules.update(dict.fromkeys({NEEDED!r}))\n"
    program = f"{hidden}sys.argv = {['vitrail', *words]!r}; from vitrail.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "serve" in done.stdout


def test_commands_in_the_docs_have_the_options_that_they_use():
    known = {name: {opt for one in found.params for opt in one.opts} for name, found in get_command(app).commands.items()}
    seen = 0
    for page in ("docs/serve.md", "README.md", "deploy/vitrail.service"):
        text = (ROOT / page).read_text(encoding="utf-8")
        for line in re.findall(r"vitrail serve ([^\n`#;]+)", text):
            words = line.split()
            name = words[0] if words[0] in known else "start"
            given = {word for word in words if word.startswith("-")}
            assert given <= known[name] | {"--no-open", "--no-buy"}, line
            seen += 1
    assert seen > 8


# --- a real process ------------------------------------------------------------------------------------------------------


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def ask(address, secret=None, body=None):
    """The status and the JSON of an answer."""
    headers = {"Content-Type": "application/json"} | ({} if secret is None else {"Authorization": f"Bearer {secret}"})
    request = urllib.request.Request(address, None if body is None else json.dumps(body).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, json.load(answer)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


@contextmanager
def process(folder, *words):
    """`vitrail serve` as a process of its own, when it is ready: the process, and the address."""
    port = free_port()
    program = "import sys; from vitrail.cli import main; main()"
    command = [sys.executable, "-c", program, "serve", *words, "--port", str(port)]
    with (folder / "printed.txt").open("w") as out, (folder / "log.jsonl").open("w") as log:
        running = subprocess.Popen(command, cwd=folder, stdout=out, stderr=log)
    try:
        address, until = f"http://127.0.0.1:{port}", time.monotonic() + 60
        while True:
            try:
                if ask(f"{address}/readyz")[0] == 200:
                    break
            except OSError:
                assert running.poll() is None, (folder / "log.jsonl").read_text()
                assert time.monotonic() < until
            time.sleep(0.05)
        yield running, address
    finally:
        if running.poll() is None:
            running.kill()
            running.wait()


def events_of(folder):
    """What the log of a process tells; all it says on standard error is the log's."""
    lines = (folder / "log.jsonl").read_text().splitlines()
    assert all(line.startswith("{") for line in lines), lines
    return [json.loads(line)["event"] for line in lines]


def ended_by(running, number):
    running.send_signal(number)
    return running.wait(60)


def test_a_question_that_a_signal_cut_is_continued_and_charged_once(tmp_path):
    house = serve_setup.write_house(tmp_path, slot=60.0, more="drain_seconds = 0")
    with process(tmp_path, "house.toml") as (running, address):
        secret = re.search(r"shown this once: (vt_\S+)", (tmp_path / "printed.txt").read_text())[1]
        question = {"explainer": "marginals", "epsilon": 0.5}
        with ThreadPoolExecutor(1) as elsewhere:
            waiting = elsewhere.submit(ask, f"{address}/v1/datasets/staff/explanations", secret, question)
            while not (jobs := ask(f"{address}/v1/jobs", secret)[1]) or jobs[0]["state"] != "running":
                time.sleep(0.02)
            assert ended_by(running, signal.SIGTERM) == 0
            assert waiting.exception(60) is not None or waiting.result()[1].get("state") != "done"
    house.write_text(house.read_text().replace("slot_seconds = 60.0", "slot_seconds = 0"))
    with process(tmp_path, "house.toml") as (running, address):
        assert "shown this once" not in (tmp_path / "printed.txt").read_text()
        status, job = ask(f"{address}/v1/jobs/{jobs[0]['id']}?wait=30", secret)
        assert (status, job["state"]) == (200, "done")
        assert ended_by(running, signal.SIGINT) == 0
        assert "has ended" in (tmp_path / "printed.txt").read_text()
    assert events_of(tmp_path) == ["started", "ending", "ended"]
    with closing(existing_ledger(read_house(house))) as ledger:
        assert ledger.verify().ok
        assert ledger.statement("staff").n_questions == 1
        with ledger.database.transaction(read_only=True) as connection:
            assert connection.exec_driver_sql("SELECT attempts FROM vitrail_serve_jobs").scalar_one() == 2


def test_the_demo_answers(tmp_path):
    words = ("--demo", "--folder", "demo", "--no-open")
    question = {"explainer": "marginals", "options": {"columns": ["age"]}, "epsilon": 0.3}
    with process(tmp_path, *words) as (running, address):
        printed = (tmp_path / "printed.txt").read_text()
        tokens = dict(re.findall(r"^  (\w+) .*(vt_\S+)$", printed, re.MULTILINE))
        assert tokens.keys() == {"owner", "alice", "rita", "audrey"}
        status, job = ask(f"{address}/v1/datasets/census/explanations", tokens["alice"], question)
        assert status in (200, 202)
        status, job = ask(f"{address}/v1/jobs/{job['id']}?wait=30", tokens["alice"])
        assert (status, job["state"]) == (200, "done")
        reasons = {"explainer": "shapley", "model": "income", "points": [POINT]}
        dear, refused = (
            ask(f"{address}/v1/datasets/census/explanations", tokens["alice"], {**reasons, "epsilon": epsilon})
            for epsilon in (0.35, 0.6)
        )
        assert (dear[0], dear[1]["state"]) == (202, "waiting")  # for the owner
        assert (refused[0], refused[1]["status"]) == (402, 402)  # above her cap
        assert ask(f"{address}/v1/jobs", tokens["rita"])[0] == 403
        spent = ask(f"{address}/v1/datasets/census/budget", tokens["owner"])[1]["spent_epsilon"]
        assert spent == pytest.approx(0.3, rel=0.01)
        assert ended_by(running, signal.SIGTERM) == 0
    assert (tmp_path / "demo" / "state").is_dir()  # how far its ledger has come: not among the user's own records


POINT = {
    "age": 38, "workclass": "Private", "education": "HS-grad", "education-num": 9, "marital-status": "Married-civ-spouse",
    "occupation": "Sales", "relationship": "Wife", "race": "White", "sex": "Female", "capital-gain": 0, "capital-loss": 0,
    "hours-per-week": 45, "native-country": "United-States",
}  # fmt: skip


def test_a_port_that_is_taken_is_told_before_anything_is_opened(run, house, tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        ran = run("house.toml", "--port", taken.getsockname()[1])
    assert ran.code == 2
    assert "cannot be listened on" in ran.err
    assert not (tmp_path / "ledger.db").exists()


def test_the_demo_is_a_house_with_a_licence(tmp_path):
    house, before = new_house.make_demo(tmp_path / "demo")
    assert not before
    assert new_house.make_demo(tmp_path / "demo") == (house, True)
    assert "CC BY 4.0" in (tmp_path / "demo" / "README.md").read_text()
    assert sum(file.stat().st_size for file in new_house.DEMO.iterdir()) < 400_000
    declared = read_house(house)
    assert declared.people["alice"].caps == {"census": new_house.DEMO_CAP}
    (tmp_path / "full").mkdir()
    shutil.copy(house, tmp_path / "full" / "mine.txt")
    with pytest.raises(ValueError, match="not empty"):
        new_house.make_demo(tmp_path / "full")


@pytest.mark.parametrize(
    ("host", "address", "shown"),
    [
        ("127.0.0.1", None, "http://127.0.0.1:8765"),
        ("0.0.0.0", None, "http://127.0.0.1:8765"),
        ("::1", None, "http://[::1]:8765"),
        ("127.0.0.1", "https://vitrail.example/", "https://vitrail.example"),
    ],
)
def test_where_people_go(house, host, address, shown):
    from dataclasses import replace

    assert address_of(replace(read_house(house), host=host, address=address)) == shown


# --- what a walk through it stumbled over --------------------------------------------------------------------------------


def test_the_demo_does_not_serve_a_real_house_with_tokens_for_everybody(run, tmp_path):
    serve_setup.write_house(tmp_path)
    ran = run("--demo", "--folder", str(tmp_path), "--no-open")
    assert ran.code == 2
    assert "holds a house that is not the demo" in ran.err
    assert "vt_" not in ran.out + ran.err
    folder = tmp_path / "demo"
    house, before = new_house.make_demo(folder)
    assert (new_house.make_demo(folder), before) == ((house, True), False)
    with (folder / "census.parquet").open("ab") as file:
        file.write(b"\0")
    with pytest.raises(InvalidInput, match="not the demo"):
        new_house.make_demo(folder)


def test_the_first_token_is_not_spent_on_a_start_that_fails(tmp_path):
    house = serve_setup.write_house(tmp_path)
    (tmp_path / "staff.csv").rename(tmp_path / "elsewhere.csv")
    with pytest.raises(AssertionError), process(tmp_path, "house.toml"):
        pass
    assert "vt_" not in (tmp_path / "printed.txt").read_text()
    (tmp_path / "elsewhere.csv").rename(tmp_path / "staff.csv")
    with process(tmp_path, house.name):
        assert "shown this once: vt_" in (tmp_path / "printed.txt").read_text()


def test_a_command_that_is_misspelt_is_not_a_house(run):
    ran = run("tokn", "house.toml", "alice")
    assert ran.code == 2
    assert "Did you mean 'token'?" in ran.err


WRONG_HOUSES = {
    'address = "vitrail.example"': "write how people reach the service",
    'address = "https://vitrail.example/below"': "write how people reach the service",
    'trusted_proxies = ["localhost"]': "write addresses or networks",
    'access_log = "nowhere/access.jsonl"': "there is no such folder",
}


@pytest.mark.parametrize(("line", "said"), WRONG_HOUSES.items())
def test_check_finds_what_would_stop_or_mislead_a_start(run, tmp_path, line, said):
    house = serve_setup.write_house(tmp_path, more=line)
    ran = run(str(house), "--check")
    assert ran.code == 2
    assert said in ran.err


def test_check_says_where_the_ledger_holds_something_else(run, tmp_path):
    house = serve_setup.write_house(tmp_path)
    house.write_text(house.read_text() + "[people.alice.caps]\nstaff = 0.5\n")
    with serve_setup.serving(house) as service:
        service.cap(serve_setup.person("owner"), "alice", "staff", 0.8)
    ran = run(str(house), "--check")
    assert "'alice' on 'staff' is 0.5 in the house and 0.8 in the ledger" in ran.out
    assert "1 of these lines asks for care" in ran.out
    declared = tmp_path / "staff.toml"
    declared.write_text(declared.read_text().replace("epsilon = 20.0", "epsilon = 30.0"))
    ran = run(str(house), "--check")
    assert ran.code == 2
    assert "a budget never changes once it is set" in ran.err


def test_what_is_wrong_with_a_model_names_the_line_and_the_key(run, tmp_path):
    house = serve_setup.write_house(tmp_path)
    house.write_text(house.read_text().replace('inputs = "features"', 'inputs = "values"'))
    ran = run(str(house), "--check")
    assert ran.code == 2
    assert "[models.score], score.onnx: " in ran.err
    assert "--inputs" not in ran.err


def test_a_second_signal_waits_for_no_question(tmp_path):
    """The lane of a slot of a minute; a first signal alone would wait for its end."""
    serve_setup.write_house(tmp_path, slot=60.0, more="drain_seconds = 3000")
    with process(tmp_path, "house.toml") as (running, address):
        secret = re.search(r"shown this once: (vt_\S+)", (tmp_path / "printed.txt").read_text())[1]
        with ThreadPoolExecutor(1) as elsewhere:
            waiting = elsewhere.submit(
                ask, f"{address}/v1/datasets/staff/explanations", secret, {"explainer": "marginals", "epsilon": 0.5}
            )
            while not (jobs := ask(f"{address}/v1/jobs", secret)[1]) or jobs[0]["state"] != "running":
                time.sleep(0.02)
            running.send_signal(signal.SIGINT)
            while '"ending"' not in (tmp_path / "log.jsonl").read_text():
                time.sleep(0.02)
            assert ended_by(running, signal.SIGINT) == 0
            assert waiting.exception(60) is not None or waiting.result()[1].get("state") != "done"
    assert [json.loads(line)["event"] for line in (tmp_path / "log.jsonl").read_text().splitlines()][1:3] == [
        "ending",
        "cutting",
    ]

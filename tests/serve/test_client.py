"""``vt.connect`` over a real socket: who asks, waiting, approvals, what is refused, wires that break, and the token."""

from __future__ import annotations

import hashlib
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import vitrail as vt
from serve_client_setup import BreakingWire, Place, certificate, listening_house
from serve_setup import POINT, onnx_model, person, write_house
from vitrail.errors import BudgetExceeded, DamagedFile, InvalidInput, LedgerError, ModelError, Unanswered
from vitrail.progress import told
from vitrail.serve import client
from vitrail.serve.problems import TITLES, Problem
from vitrail.serve.remote_transport import Unreachable, error_of

DEAR = 2.5
"""Above what is answered without asking the owner."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Place]:
    path = write_house(tmp_path_factory.mktemp("house"), names=("staff", "other"), approve_above=2.0)
    digest = hashlib.sha256(onnx_model()).hexdigest()
    kept = f'[models.kept]\nfile = "score.onnx"\nsha256 = "{digest}"\ninputs = "features"\noutput = 0\n'
    path.write_text(path.read_text() + kept)
    with listening_house(path) as made:
        yield made


# --- what there is -------------------------------------------------------------------------------------------------------


def test_a_house_says_who_you_are_and_what_there_is(place: Place) -> None:
    house = place.connect("bob")
    assert (house.person, house.role, house.datasets, house.models) == ("bob", "analyst", ("staff",), ("score", "kept"))
    assert repr(house) == f"RemoteHouse('A house for tests' at {place.address}, as 'bob', analyst)"
    assert "you are 'bob', analyst" in str(house)
    assert "<td>staff</td><td>score, kept</td>" in house._repr_html_()
    with pytest.raises(TypeError, match=r"house\.datasets"):
        list(house)


def test_a_name_that_is_not_there_is_told_with_the_nearest(place: Place) -> None:
    house = place.connect()
    with pytest.raises(
        InvalidInput, match=r"no dataset 'staf' for you here; there is 'staff', 'other'. Did you mean 'staff'"
    ):
        house["staf"]
    with pytest.raises(InvalidInput, match="no dataset 'other' for you"):
        place.connect("bob")["other"]
    with pytest.raises(InvalidInput, match=r"no model 'scores' here.* Did you mean 'score'"):
        house.model("scores")


def test_a_token_that_is_not_known_is_refused(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Problem, match="the token is not known here") as caught:
        vt.connect(place.address, "vt_somebody")
    assert caught.value.status == 401
    monkeypatch.delenv(client.TOKEN_VARIABLE, raising=False)
    with pytest.raises(InvalidInput, match=r"there is no token.*VITRAIL_TOKEN"):
        vt.connect(place.address)
    monkeypatch.setenv(client.TOKEN_VARIABLE, place.token("alice"))
    assert vt.connect(place.address).person == "alice"


def test_the_token_is_shown_nowhere(place: Place) -> None:
    token = place.token("alice")
    house = vt.connect(place.address, token)
    shown = [house, house["staff"], house["staff"].budget, house.transport, house.jobs()]
    assert not any(token in text for one in shown for text in (repr(one), str(one)))


# --- models --------------------------------------------------------------------------------------------------------------


def test_an_approved_model_is_known_by_its_content(place: Place) -> None:
    house = place.connect()
    data, model = house["staff"], house.model("score")
    assert model.digest() == place.service.models["score"].digest()
    assert house.model("score") is model
    own = vt.Model(onnx_model(), inputs="features", name="mine")
    assert vt.Shapley(data, own)(POINT, epsilon=0.1) == vt.Shapley(data, model)(POINT, epsilon=0.1)
    with pytest.raises(InvalidInput, match="mine is the approved model 'score' with another output, range or inputs"):
        vt.Shapley(data, vt.Model(onnx_model(), inputs="features", range=(0, 2), name="mine"))(POINT, epsilon=0.1)
    with pytest.raises(InvalidInput, match="score is no ONNX model; a service takes models that its owner approved"):
        vt.Shapley(data, vt.Model(lambda x: x[:, 0], range=(0, 1), inputs="features", name="score"))(POINT, epsilon=0.1)


def test_a_model_that_is_not_approved_is_refused_by_the_service(place: Place) -> None:
    import onnx

    other = onnx.load_from_string(onnx_model())
    other.doc_string = "changed"
    with pytest.raises(Problem, match="the owner has not approved a model 'sha256:"):
        vt.Shapley(place.connect()["staff"], vt.Model(other.SerializeToString(), inputs="features"))(POINT, epsilon=0.1)


def test_a_model_that_stays_is_explained_and_not_asked(place: Place) -> None:
    house = place.connect()
    data, kept = house["staff"], house.model("kept")
    assert repr(kept) == f"RemoteModel(kept, range=(0, 1), at {place.address})"
    declared = place.service.models["kept"]
    assert vt.Shapley(data, kept)(POINT, epsilon=0.1) == vt.Shapley(place.rows_of(), declared)(POINT, epsilon=0.1)
    assert vt.GlobalReport(data, kept, parts=["pdp"])(epsilon=0.1).cost.mu > 0
    assert vt.release(data, kept, parts=["rows", "pdp"], epsilon=0.5).parts == ("rows", "pdp")
    with pytest.raises(ModelError, match="kept stays at the service, whose owner does not hand out its file"):
        kept.predict(data.feature_schema, data.feature_schema.read_points(POINT))
    assert place.connect("owner").model("kept").digest() == declared.digest()
    with listening_house_of(place) as address:
        elsewhere = place.connect(address=address)
        with pytest.raises(InvalidInput, match=r"kept is a model of .*; take one of this service"):
            vt.Shapley(elsewhere["staff"], kept)(POINT, epsilon=0.1)


@contextmanager
def listening_house_of(place: Place) -> Iterator[str]:
    """The same service by another address."""
    wire = BreakingWire(place.address)
    try:
        yield wire.address
    finally:
        wire.close()


# --- jobs and panes ------------------------------------------------------------------------------------------------------


def test_jobs_and_results_are_found_again(place: Place) -> None:
    house = place.connect()
    bought = vt.marginals(house["other"], epsilon=0.3)
    newest = house.jobs()[0]
    assert (newest.dataset, newest.explainer, newest.state) == ("other", "marginals", "done")
    assert house.result(newest.id) == bought
    assert "marginals of 4 columns" in str(house.jobs())
    assert "<th>question</th>" in house.jobs()._repr_html_()
    with pytest.raises(Problem, match="there is no job"):
        place.connect("bob").result(newest.id)


def test_panes_are_fetched_and_read_here(place: Place) -> None:
    house = place.connect()
    model = house.model("score")
    made = vt.release(house["staff"], model, parts=["rows", "pdp"], epsilon=0.7)
    line = house.panes()[0]
    assert (line.dataset, line.person, line.published) == ("staff", "alice", None)
    assert house.pane(line.id).to_bytes() == made.to_bytes()
    assert house.pane(line.id, model=model).local(POINT).columns == ("age", "hours", "sex")
    assert place.connect("rita").panes() == ()
    place.service.publish(person("owner"), line.id, published=True)
    assert [one.id for one in place.connect("rita").panes()] == [line.id]


def test_the_phases_of_a_job_are_told(place: Place) -> None:
    heard: list[tuple[str, float]] = []
    phases = client._Phases(lambda label, share: heard.append((label, share)) or contextmanager(lambda: iter([None]))())
    with phases as shown:
        for label, share in (("histograms", 0.0), ("histograms", 0.0), ("curves", 0.25), ("curves", 0.25)):
            shown.tell(label, share)
    assert heard == [("histograms", 0.0), ("curves", 0.25), ("curves", 0.0)]
    heard.clear()
    with told(lambda label, share: heard.append((label, share))):
        vt.marginals(place.connect()["staff"], bins=9, epsilon=0.1)
    assert {label for label, _ in heard} <= {"waiting for its turn", "marginals of 4 columns", "rehearsal on public rows"}


# --- what is refused -----------------------------------------------------------------------------------------------------


def test_a_question_that_does_not_fit_is_refused_as_local_data_does(place: Place) -> None:
    data = place.connect("owner")["staff"]
    before = data.budget.spent_epsilon
    with pytest.raises(BudgetExceeded) as caught:
        vt.marginals(data, epsilon=25.0)
    with pytest.raises(BudgetExceeded) as local:
        vt.marginals(place.rows_of("owner"), epsilon=25.0)
    assert str(caught.value) == str(local.value)
    for name in ("requested_epsilon", "remaining_epsilon", "cap"):
        assert getattr(caught.value, name) == getattr(local.value, name)
    assert data.budget.spent_epsilon == before


def test_a_dear_question_waits_for_the_owner_and_is_collected(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    house, owner = place.connect(), person("owner")
    data, before = house["staff"], house["staff"].budget.spent_epsilon
    assert "The owner has to approve it first." in str(data.quote(vt.MarginalsExplainer(data), epsilon=DEAR))
    with pytest.raises(Problem, match=r"its owner was asked to approve it.*Nothing was charged. Ask again later") as caught:
        vt.marginals(data, epsilon=DEAR)
    assert data.budget.spent_epsilon == before
    place.service.approve(owner, str(caught.value.facts["job"]))
    assert vt.marginals(data, epsilon=DEAR).guarantee.epsilon == pytest.approx(DEAR)
    monkeypatch.setattr(client, "APPROVAL_SECONDS", 0.01)
    waiting, found = place.connect(wait_for_approval=True)["staff"], list[Any]()
    asking = threading.Thread(target=lambda: found.append(vt.marginals(waiting, bins=5, epsilon=DEAR)))
    asking.start()
    while not (jobs := place.service.approvals(owner)):
        assert asking.is_alive()
    place.service.approve(owner, jobs[0].id)
    asking.join(60)
    assert found[0].guarantee.epsilon == pytest.approx(DEAR)


def test_what_the_owner_declined_is_said(place: Place) -> None:
    house, owner = place.connect(), person("owner")
    with pytest.raises(Problem, match="asked to approve"):
        vt.marginals(house["staff"], bins=6, epsilon=DEAR)
    (job,) = place.service.approvals(owner)
    place.service.decline(owner, job.id, "once is enough")
    with pytest.raises(Problem, match="the owner declined it: once is enough"):
        house.result(job.id)


def test_a_role_that_may_not_ask_is_told(place: Place) -> None:
    with pytest.raises(Problem, match="'reader' may not do this"):
        place.connect("rita").datasets  # noqa: B018 - asking is what is tried
    data = place.connect("audrey")["staff"]
    with pytest.raises(Problem, match="'auditor' may not do this"):
        vt.marginals(data, epsilon=0.1)


@pytest.mark.parametrize("code", TITLES)
def test_every_problem_is_an_error_of_ours(code: str) -> None:
    kinds = {"invalid": InvalidInput, "unanswered": Unanswered, "ledger": LedgerError, "budget-exceeded": BudgetExceeded}
    error = error_of(Problem.from_json(Problem(code, "a sentence").to_json()))
    assert type(error) is kinds.get(code, Problem)
    assert str(error) == "a sentence"


# --- wires and addresses -------------------------------------------------------------------------------------------------


def test_an_answer_that_is_lost_on_the_way_is_not_paid_twice(place: Place) -> None:
    wire = BreakingWire(place.address)
    try:
        data = place.connect(address=wire.address)["staff"]
        before = data.budget.n_questions
        wire.breaks = 3
        bought = vt.marginals(data, bins=11, epsilon=0.2)
        assert wire.broken == 3
        assert data.budget.n_questions == before + 1
        assert bought == vt.marginals(place.rows_of(), bins=11, epsilon=0.2)
    finally:
        wire.close()


def test_a_service_that_began_again_hands_out_the_same_answer(tmp_path: Path) -> None:
    """A question, then a restart at another port behind the same wire: the answer is collected, and paid once."""
    path = write_house(tmp_path)
    with listening_house(path) as first:
        wire = BreakingWire(first.address)
        data = first.connect(address=wire.address)["staff"]
        bought = vt.marginals(data, epsilon=0.2)
    with listening_house(path) as second:
        wire.lead_to(second.address)
        assert vt.marginals(data, epsilon=0.2) == bought
        assert data.budget.n_questions == 1
    wire.close()


def test_many_threads_may_share_a_house(place: Place) -> None:
    house = place.connect()
    data = house["staff"]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda bins: vt.marginals(data, bins=bins, epsilon=0.05), [21, 22, 21, 22]))
    assert found[0] == found[2] != found[1] == found[3]


def test_the_client_needs_nothing_of_the_server() -> None:
    hidden = ["fastapi", "starlette", "uvicorn", "pydantic", "alembic", "authlib", "joserfc", "prometheus_client"]
    program = f"""import sys
for name in {hidden}:
    sys.modules[name] = None
import vitrail as vt
try:
    vt.connect("http://vitrail.example", "vt_token")
except vt.errors.InvalidInput:
    import vitrail.serve.kinds
    print("refused")"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.stdout == "refused\n", done.stderr


def test_a_service_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("vitrail.serve.remote_transport.FIRST_PAUSE_SECONDS", 0.001)
    with pytest.raises(Unreachable, match=r"cannot be reached: .*asking it again collects its answer"):
        vt.connect("http://127.0.0.1:9", "vt_token")


@contextmanager
def answering(status: int, content: bytes, **headers: str) -> Iterator[tuple[str, list[str]]]:
    """A server that is no service of ours, and what it was shown."""
    seen: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(content))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *said: object) -> None:
            pass

    with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=lambda: server.serve_forever(poll_interval=0.01), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}", seen
        server.shutdown()


def test_what_is_no_service_of_ours_is_told() -> None:
    with answering(200, b"<html>") as (address, _), pytest.raises(Unreachable, match="does not answer as a service"):
        vt.connect(address, "vt_token")
    with answering(404, b"nothing") as (address, _), pytest.raises(Unreachable, match="status 404 and not as a service"):
        vt.connect(address, "vt_token")
    with (
        answering(302, b"", Location="http://127.0.0.1:9/v1/me") as (address, seen),
        pytest.raises(Unreachable, match=r"sends elsewhere, to http://127.0.0.1:9/v1/me; the token is not sent on"),
    ):
        vt.connect(f"{address}/behind/a/proxy/", "vt_token")
    assert seen == ["/behind/a/proxy/v1/me"]


def test_a_certificate_is_verified_before_the_token_is_sent(place: Place, tmp_path: Path) -> None:
    with certificate(tmp_path, place) as (address, file):
        with pytest.raises(
            Unreachable, match=r"is not trusted.*Nothing was sent; give the authority's file as certificates="
        ):
            place.connect(address=address)
        assert place.connect(address=address, certificates=file).person == "alice"
    with pytest.raises(InvalidInput, match="cannot be read as certificates"):
        vt.connect("https://127.0.0.1", "vt_token", certificates=tmp_path / "nothing.pem")


@pytest.mark.parametrize(
    ("address", "sentence"),
    [
        ("http://vitrail.example", "a token is not sent over plain HTTP to another machine"),
        ("http://127.0.0.1.example", "a token is not sent over plain HTTP"),
        ("ftp://127.0.0.1", "it must begin with https://"),
        ("127.0.0.1:8765", "it must begin with https://"),
        ("https://alice:secret@vitrail.example", "leave names, passwords and questions out of it"),
        ("http://127.0.0.1:port", "address is 'http://127.0.0.1:port': "),
        ("", "it must be a non-empty text, such as 'https://vitrail.example'"),
    ],
)
def test_addresses_that_a_token_is_not_sent_to(address: str, sentence: str) -> None:
    with pytest.raises(InvalidInput, match=sentence):
        vt.connect(address, "vt_token")


def test_tokens_that_are_none(place: Place) -> None:
    for token in ("vt_a b", "vt_\n", "vt_é", ""):
        with pytest.raises(InvalidInput, match="token"):
            vt.connect(place.address, token)


def test_an_answer_that_came_damaged_is_not_used(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    house = place.connect()
    vt.marginals(house["staff"], bins=13, epsilon=0.1)
    job = house.jobs()[0]
    fetched = house.transport.file
    monkeypatch.setattr(house.transport, "file", lambda *path, **query: fetched(*path, **query) + b" ")
    with pytest.raises(DamagedFile, match="came damaged"):
        house.result(job.id)


def test_a_wrong_address_is_told_as_one(place: Place) -> None:
    with pytest.raises(InvalidInput, match="no service below '/datasets'; leave that out"):
        place.connect(address=f"{place.address}/datasets")

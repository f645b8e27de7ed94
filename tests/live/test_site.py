"""Live pages as files: what is refused before anything is written, what is written, and that it says what it hands out."""

import base64
import gzip
import hashlib
import json
import re

import numpy as np
import pytest

import vitrail as vt
from benchmark_scripts import script
from command_line import vitrail
from vitrail.errors import InvalidInput, ModelError
from vitrail.live import site
from vitrail.live.facts import middle_person, page_facts
from vitrail.live.site import MANIFEST, one_file, site_files, write_page
from vitrail.live.widget import explore
from vitrail.show.page_words import PageWords

pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")

small_site = script("small_site", "tests/live")
TOLD = {"trained_on": small_site.TRAINED_ON, "publish_model": True}
built = pytest.mark.skipif(not (site.ASSETS / "page.js").exists(), reason="the live page is not built here (make web)")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("subject")
    small_site.write_subject(made)
    return made


@pytest.fixture(scope="module")
def pane(folder):
    return vt.Pane.load(folder / "small.pane", model=folder / "model.onnx")


@pytest.fixture(scope="module")
def files(pane):
    return site_files(pane, pane.model, trained_on=small_site.TRAINED_ON, person=small_site.PERSON)


# --- refusals ------------------------------------------------------------------------------------------------------------


def test_a_model_is_not_handed_out_unasked(pane, tmp_path):
    with pytest.raises(InvalidInput, match=r"hands out the model.*publish_model=True"):
        write_page(pane, tmp_path / "site", trained_on="customers")
    with pytest.raises(InvalidInput, match="what the model was trained on"):
        write_page(pane, tmp_path / "site", publish_model=True)
    assert list(tmp_path.iterdir()) == []


def test_only_onnx_models_run_in_a_browser(pane, folder, tmp_path):
    plain = vt.Model(lambda x: x[:, 0], range=(0, 1), name="by hand")
    with pytest.raises(ModelError, match=r"by hand is none; export it and give the \.onnx file"):
        write_page(pane, tmp_path / "site", plain, **TOLD)
    without = vt.Pane.load(folder / "small.pane")
    with pytest.raises(InvalidInput, match="none was given"):
        write_page(without, tmp_path / "site", **TOLD)


def test_a_model_that_returns_dictionaries_is_refused_with_the_way_out(pane, tmp_path):
    from skl2onnx import to_onnx
    from sklearn.linear_model import LogisticRegression

    rows = np.random.default_rng(0).random((50, pane.schema.n_features))
    graph = to_onnx(LogisticRegression().fit(rows, np.arange(50) % 2), rows[:1].astype(np.float32))
    (tmp_path / "zip.onnx").write_bytes(graph.SerializeToString())
    with pytest.raises(ModelError, match="zipmap"):
        write_page(pane, tmp_path / "site", vt.Model(tmp_path / "zip.onnx"), **TOLD)


@built
def test_nothing_but_a_site_is_overwritten(pane, tmp_path):
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.txt").write_text("ten years of work")
    for place, said in (("full", "is not empty"), ("no/site", "there is no folder")):
        with pytest.raises(InvalidInput, match=said):
            write_page(pane, tmp_path / place, **TOLD)
    (tmp_path / "file").write_text("")
    with pytest.raises(InvalidInput, match="it is a file"):
        write_page(pane, tmp_path / "file", **TOLD)
    where = write_page(pane, tmp_path / "site", **TOLD)
    (where / "robots.txt").write_text("mine")
    (where / "page.json").write_text("damaged")
    assert write_page(pane, where, **TOLD) == where
    assert (where / "robots.txt").read_text() == "mine"
    assert json.loads((where / "page.json").read_bytes())["trainedOn"] == small_site.TRAINED_ON


def test_without_built_scripts_the_way_to_them_is_said(pane, tmp_path, monkeypatch):
    monkeypatch.setattr(site, "ASSETS", tmp_path / "nowhere")
    with pytest.raises(InvalidInput, match=r"run `make web`.*Node 20"):
        write_page(pane, tmp_path / "site", **TOLD)
    with pytest.raises(InvalidInput, match="make web"):
        explore(pane)
    assert list(tmp_path.iterdir()) == []


# --- files ---------------------------------------------------------------------------------------------------------------


@built
def test_a_site_lists_its_files_with_their_hashes(files):
    listed = json.loads(files[MANIFEST])["files"]
    assert set(files) == {*listed, MANIFEST, "service_worker.js"}
    assert all(hashlib.sha256(files[name]).hexdigest() == sha256 for name, sha256 in listed.items())
    kept = json.loads(files["service_worker.js"].split(b"\n")[0].removeprefix(b"const SITE = ").removesuffix(b";"))
    assert kept["files"] == {**listed, MANIFEST: hashlib.sha256(files[MANIFEST]).hexdigest()}
    assert vt.Pane.from_bytes(files["pane.pane"]).dataset == "customers"


@built
def test_a_site_is_small_enough_to_load(files):
    assert sum(len(gzip.compress(content)) for content in files.values()) < 5_000_000


@built
def test_the_same_pane_gives_the_same_site(pane, files):
    again = site_files(pane, pane.model, trained_on=small_site.TRAINED_ON, person=small_site.PERSON)
    assert again == files


@built
def test_pages_have_a_strict_policy_and_no_script_but_their_own(files):
    html = files["index.html"].decode()
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', html)[1]
    assert "default-src &#39;none&#39;" in policy
    assert "unsafe-inline" not in policy
    assert re.findall(r"<script[^>]*>", html) == ['<script type="module" src="page.js">']
    assert not re.search(r"\son\w+=", html)
    one = one_file(files).decode()
    script_text = re.search(r'<script type="module">(.*?)</script>', one, re.DOTALL)[1]
    sha256 = base64.b64encode(hashlib.sha256(script_text.encode()).digest()).decode()
    assert f"sha256-{sha256}".replace("+", "&#43;") in one or f"sha256-{sha256}" in one
    assert "http" not in re.sub(r"<script.*?</script>", "", one, flags=re.DOTALL).replace("http-equiv", "")


@built
def test_one_file_holds_the_same_files(files):
    blocks = dict(re.findall(r'data-name="([^"]+)">([^<]*)</script>', one_file(files).decode()))
    inside = {name: base64.b64decode(text) for name, text in blocks.items()}
    assert gzip.decompress(inside["model.onnx"]) == files["model.onnx"]
    manifest = json.loads(inside[MANIFEST])
    assert manifest["shown"]["model.onnx"] == hashlib.sha256(files["model.onnx"]).hexdigest()
    assert all(hashlib.sha256(inside[name]).hexdigest() == sha256 for name, sha256 in manifest["files"].items())


# --- facts ---------------------------------------------------------------------------------------------------------------


def test_a_page_says_what_it_hands_out_and_promises(pane):
    facts = page_facts(pane, pane.model, trained_on="customers of 2020", words=PageWords(language="de"))
    assert facts["trainedOn"] == "customers of 2020"
    assert facts["guarantee"]["sentence"] == pane.guarantee.sentence
    assert facts["catalogue"]["separators"] == [".", ",", "\u00a0"]
    assert "nicht erfasst" in facts["promise"][-1] or len(facts["promise"]) == 2
    assert facts["columns"]["age"]["numeric"] is True
    assert set(facts["claims"]) == set(facts["marks"])


def test_words_for_columns_that_are_not_there_are_refused(pane):
    words = PageWords.from_json({"columns": {"aeg": {"label": "Age"}}})
    with pytest.raises(InvalidInput, match="aeg"):
        page_facts(pane, pane.model, trained_on="x", words=words)


def test_the_form_starts_with_nobody_who_fits_the_schema(pane):
    person = middle_person(pane)
    assert pane.schema.read_points(person).shape == (1, 13)
    assert 25 <= person["age"] <= 50
    assert person["sex"] == "Male"
    linked = next(rule for rule in pane.schema.rules if rule.KIND == "link")
    assert person[linked.other] == linked.values[person[linked.column]]


# --- notebooks and the command line --------------------------------------------------------------------------------------


@built
def test_a_notebook_shows_the_page_in_a_frame_that_sees_nothing_else(pane):
    shown = pane.explore(small_site.PERSON)
    html = shown._repr_mimebundle_()["text/html"]
    assert 'sandbox="allow-scripts"' in html
    assert "allow-same-origin" not in html
    assert "clear it before you pass the notebook on" in html
    assert "LivePage(" in repr(shown)


@built
def test_the_command_writes_a_page_and_says_what_it_is(folder, tmp_path, monkeypatch, capsys):
    def page(*words, model=folder / "model.onnx", where="site"):
        given = ("page", folder / "small.pane", "--model", model, "-o", tmp_path / where, *words)
        return vitrail(monkeypatch, capsys, *given)

    told = ("--publish-model", "--trained-on", "customers")
    refused = {"say --publish-model": page(), "--trained-on": page("--publish-model"), "ONNX": page(*told, model="m.pkl")}
    for said, ran in refused.items():
        assert ran.code == 2
        assert said in ran.err
    assert list(tmp_path.iterdir()) == []
    done = page(*told)
    assert done.code == 0
    assert "python -m http.server" in done.out
    assert "it is public" in done.err
    assert (tmp_path / "site" / "index.html").exists()
    assert "one file" in page(*told, where="page.html").out
    assert (tmp_path / "page.html").stat().st_size < 8_000_000

"""The live page in a real browser: from the form to the explanation, wrong input, without a network, held against Python."""

import functools
import json
import shutil
import threading
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pytest

import vitrail as vt
from benchmark_scripts import script
from browser import checks, needs

pytest.importorskip("onnxruntime")
pytest.importorskip("skl2onnx")
if (why := needs.without_live_page()) is not None:
    pytest.skip(why, allow_module_level=True)

from vitrail.live.site import MANIFEST, write_page

small_site = script("small_site", "tests/live")
DONE = "body[data-state=done]"
TOLD = {"trained_on": small_site.TRAINED_ON, "publish_model": True, "person": small_site.PERSON}


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: the console is the tests'."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    made = tmp_path_factory.mktemp("live")
    small_site.write_subject(made)
    pane = vt.Pane.load(made / "small.pane", model=made / "model.onnx")
    write_page(pane, made / "site", **TOLD)
    write_page(pane, made / "page.html", **TOLD)
    return made


@pytest.fixture(scope="module")
def python(folder):
    pane = vt.Pane.load(folder / "small.pane", model=folder / "model.onnx")
    return pane.explain(small_site.PERSON)


def served(folder):
    server = ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


@pytest.fixture(scope="module")
def server(folder):
    running = served(folder / "site")
    yield running
    running.shutdown()


@pytest.fixture
def tab(browser, server):
    context = browser.new_context(viewport={"width": 1280, "height": 844})
    tab, home = context.new_page(), (f"http://127.0.0.1:{server.server_port}/", "data:", "blob:")
    tab.problems = []
    tab.on("pageerror", lambda error: tab.problems.append(str(error)))
    tab.on("console", lambda line: tab.problems.append(line.text) if line.type == "error" else None)
    tab.on("request", lambda asked: None if asked.url.startswith(home) else tab.problems.append(asked.url))
    tab.goto(f"http://127.0.0.1:{server.server_port}/")
    tab.wait_for_selector(DONE)
    yield tab
    checks.assert_none(tab.problems)
    context.close()


def asked_again(tab, change):
    """Does something, and waits for all that follows from it."""
    tab.evaluate("document.body.dataset.state = 'asked'")
    change()
    tab.wait_for_selector(DONE)


def texts(tab, selector):
    return [text.replace("\n", " ").strip() for text in tab.locator(selector).all_inner_texts()]


def test_the_page_says_what_python_says(tab, python):
    from vitrail.pane.person import letter_of

    letter = letter_of(python)
    assert tab.inner_text("#outcome h1") == letter.title
    assert texts(tab, "#outcome p") == list(letter.lead)
    assert texts(tab, "#why .reason > span:first-child") == [reason.sentence for reason in letter.told]
    assert texts(tab, "#why .reason .size") == [f"{reason.amount} ± {reason.give_or_take}" for reason in letter.told]
    assert texts(tab, "#why h2")[: len(letter.told_parts)] == [heading for heading, _ in letter.told_parts]
    answers = [f"{change.label}: {change.after}" for answer in letter.answers for change in answer]
    assert texts(tab, "#changes .changes b") == answers
    assert len(answers) > 0
    assert texts(tab, "#numbers .bar-words > span:first-child") == [bar.text for bar in letter.bars]
    promised = texts(tab, "#promise p")
    assert set(letter.promise) <= set(promised)
    assert any(small_site.TRAINED_ON in text for text in promised)


NUMBERS = """async (row) => {
  const worker = new Worker("worker.js"), get = async (name) => new Uint8Array(await (await fetch(name)).arrayBuffer());
  const packed = new Response(new Blob([await get("runtime.wasm")]).stream().pipeThrough(new DecompressionStream("gzip")));
  const files = { pane: await get("pane.pane"), prepared: await get("prepared.zip"), search: null,
    model: await get("model.onnx"), runtime: new Uint8Array(await packed.arrayBuffer()) };
  const found = [];
  return await new Promise((resolve, reject) => {
    worker.onmessage = ({ data }) => {
      if (data.kind === "failed") reject(new Error(data.sentence));
      if (data.kind === "ready") worker.postMessage({ kind: "ask", id: 1, row: Float64Array.from(row) });
      if (data.kind === "piece") found.push(data.piece);
      if (data.kind === "done") resolve(found);
    };
    worker.postMessage({ kind: "open", files });
  });
}"""


def test_contributions_are_pythons(tab, folder):
    pane = vt.Pane.load(folder / "small.pane", model=folder / "model.onnx")
    row = pane.schema.read_points(small_site.PERSON)[0].tolist()
    pieces = tab.evaluate(NUMBERS, row)
    reasons = {piece["nRows"]: piece["explanation"] for piece in pieces if piece["kind"] == "reasons"}
    assert set(reasons) == {256, 1024}
    for n_rows, found in reasons.items():
        expected = pane.local(small_site.PERSON, bands=True, background=n_rows)
        assert [one["column"] for one in found["contributions"]] == list(expected.columns)
        for name, numbers in (("value", expected.values), ("lower", expected.lower), ("upper", expected.upper)):
            assert [one[name] for one in found["contributions"]] == pytest.approx(numbers[0].tolist(), abs=1e-5)
        assert found["base"] == pytest.approx(float(expected.base_values[0]), abs=1e-5)


def test_a_change_in_the_form_changes_the_answer(tab, folder):
    pane = vt.Pane.load(folder / "small.pane", model=folder / "model.onnx")
    asked_again(tab, lambda: tab.get_by_label("education", exact=True).select_option("Doctorate"))
    asked_again(tab, lambda: tab.get_by_role("textbox", name="hours-per-week").fill("60"))
    # The years of education follow from the degree, and have no field of their own.
    assert tab.locator(".panel").get_by_label("education-num").count() == 0
    person = {**small_site.PERSON, "education": "Doctorate", "education-num": 16, "hours-per-week": 60}
    output = pane.model.predict(pane.schema, pane.schema.read_points(person))[0]
    assert f"{100 * output:.0f}%" in tab.inner_text("#outcome .lead")
    assert tab.inner_text("#outcome h1") == f"Your loan: {'approved' if output >= 0.5 else 'declined'}"
    assert tab.title() == tab.inner_text("#outcome h1")


def test_a_slider_moves_its_field_and_the_answer(tab):
    before = tab.inner_text("#numbers")
    slider = tab.get_by_role("slider", name="age")
    asked_again(tab, lambda: (slider.focus(), tab.keyboard.press("ArrowRight")))
    assert tab.get_by_role("textbox", name="age").input_value() == "39"
    assert tab.inner_text("#numbers") != before


def test_wrong_input_gets_a_sentence_and_the_answer_stays(tab):
    before, field = tab.inner_text("#outcome"), tab.get_by_role("textbox", name="age")
    for wrong in ("200", "abc", "", "38.5", "1e999"):
        field.fill(wrong)
        assert field.get_attribute("aria-invalid") == "true", wrong
        told = tab.locator(f"#{field.get_attribute('id')}-error").inner_text()
        assert told.startswith("“age” must be a whole number from 17 to 90."), wrong
        assert "last entries that fit" in told
    assert tab.inner_text("#outcome") == before
    asked_again(tab, lambda: field.fill("40"))
    assert field.get_attribute("aria-invalid") is None


def test_answers_to_older_questions_are_dropped(tab):
    slider = tab.get_by_role("slider", name="age")
    slider.focus()
    asked_again(tab, lambda: [tab.keyboard.press("ArrowRight") for _ in range(20)])
    assert texts(tab, "#numbers dd")[0] == "58"


def test_without_a_network_it_works_as_before(browser, server, folder):
    context = browser.new_context()
    tab = context.new_page()
    tab.goto(f"http://127.0.0.1:{server.server_port}/")
    tab.wait_for_selector(DONE)
    tab.evaluate("navigator.serviceWorker.ready.then(() => true)")
    tab.wait_for_function("navigator.serviceWorker.controller !== null")
    said = tab.inner_text("#outcome")
    context.set_offline(True)
    tab.reload()
    tab.wait_for_selector(DONE)
    assert tab.inner_text("#outcome") == said
    kept = tab.evaluate(
        "caches.keys().then(async (names) => (await (await caches.open(names[0])).keys()).map((one) => one.url))"
    )
    listed = json.loads((folder / "site" / MANIFEST).read_bytes())["files"]
    assert sorted(url.rsplit("/", 1)[1] for url in kept) == sorted([*listed, MANIFEST])
    context.close()


@pytest.mark.parametrize("damaged", ["model.onnx", "pane.pane", "runtime.wasm"])
def test_a_damaged_file_is_a_sentence_on_the_page(browser, folder, tmp_path, damaged):
    site = shutil.copytree(folder / "site", tmp_path / "site")
    content = bytearray((site / damaged).read_bytes())
    content[len(content) // 2] ^= 1
    (site / damaged).write_bytes(content)
    running, context = served(site), browser.new_context()
    tab = context.new_page()
    tab.goto(f"http://127.0.0.1:{running.server_port}/")
    tab.wait_for_selector("body[data-state=failed]")
    said = tab.get_by_role("alert").inner_text()
    assert said.startswith("This page cannot show an answer.")
    assert damaged in said
    context.close()
    running.shutdown()


def test_one_file_opens_without_a_server(browser, folder, python):
    with checks.opened_while_listening(browser, folder / "page.html") as (tab, problems):
        tab.wait_for_selector(DONE)
        assert tab.inner_text("#outcome h1").startswith("Your loan: ")
        assert tab.locator("#why .reasons li").count() >= 2
    # The Worker's script is a part of the page, and has an address that is valid in it alone.
    checks.assert_none([problem for problem in problems if not problem.startswith("asks for blob:null/")])


def test_a_browser_without_web_assembly_is_told(browser, server):
    context = browser.new_context()
    context.add_init_script("delete globalThis.WebAssembly")
    tab = context.new_page()
    tab.goto(f"http://127.0.0.1:{server.server_port}/")
    tab.wait_for_selector("body[data-state=failed]")
    assert "WebAssembly" in tab.get_by_role("alert").inner_text()
    context.close()


def test_a_live_page_fits_every_window(tab):
    checks.assert_none(checks.overflows(tab, widths=(360, 390, 768, 1280, 1440)))
    checks.assert_none(checks.overflows(tab, widths=(390, 1280), direction="rtl"))
    checks.assert_none(checks.structure_problems(tab))


def test_everything_is_reached_by_keyboard_and_has_a_name(tab):
    checks.assert_none(checks.keyboard_problems(tab))


@pytest.mark.usefixtures("axe")
@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_a_live_page_is_accessible(browser, server, width, scheme):
    context = browser.new_context(viewport={"width": width, "height": 844}, color_scheme=scheme, bypass_csp=True)
    tab = context.new_page()
    tab.goto(f"http://127.0.0.1:{server.server_port}/")
    tab.wait_for_selector(DONE)
    tab.evaluate("document.querySelectorAll('details').forEach((fold) => { fold.open = true })")
    tab.wait_for_selector("#standing details .card")
    tab.get_by_role("textbox", name="age").fill("abc")
    checks.assert_none(checks.axe_problems(tab))
    context.close()

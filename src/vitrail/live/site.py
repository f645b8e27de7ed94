"""Writes a live page: a folder of static files, or one HTML file, in which a pane and a model run in the reader's browser.

*The model is handed out.* Whoever can open the page has the model's file. A pane's promise is about the rows behind the
explanation; a model that was trained without such a promise may give away rows that it was trained on, and no promise here
covers that. So nothing is written unless the owner says ``publish_model``, and the page says what the model was trained on.

A site lists its files with their SHA-256 in ``vitrail-site.json``; the page checks them before it uses them, and a folder is
overwritten only where that list says that it is a site.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from ..accounting import JsonValue
from ..errors import InvalidInput, ModelError
from ..model import Model
from ..model.onnx_graphs import OnnxPredictor
from ..pane import Pane
from ..pane.person import counterfactual_on, page_words_of
from ..progress import progress
from ..results.archive import digest, json_bytes
from ..schema import Level
from ..show.catalogue import catalogue
from ..show.page_words import PageWords
from ..show.style import TEMPLATES as SHOWN
from .facts import page_facts
from .prepared import prepared
from .prepared_search import prepared_search

FORMAT = "vitrail-site/1"
MANIFEST = "vitrail-site.json"
ASSETS = Path(__file__).parent / "assets"
TEMPLATES = Path(__file__).parent / "templates"
RUNTIME = "ort-wasm-simd-threaded.wasm"
SCRIPTS = ("page.js", "worker.js", "service_worker.js")
MOST_TRAINED_ON = 300
ONE_FILE = (".html", ".htm")
WHY_PUBLISH = (
    "a live page hands out the model: whoever opens it has the model's file, and a model that was trained without "
    "differential privacy can leak rows that it was trained on, which the pane's promise does not cover"
)
EXPORT = (
    "export it and give the .onnx file. For scikit-learn: skl2onnx.to_onnx, with options={'zipmap': False}; for torch: "
    "torch.onnx.export; for boosters: onnxmltools"
)


def write_page(
    pane: Pane,
    output: str | Path,
    model: Model | None = None,
    *,
    trained_on: str = "",
    publish_model: bool = False,
    words: PageWords | None = None,
    person: object = None,
) -> Path:
    """Write a live page; returns where.

    Parameters
    ----------
    pane : Pane
        With private rows; of one model at most (``pane.about(name)`` of several).
    output : path
        A folder, or a file that ends in .html: then everything is inside of it.
    model : Model, optional
        An ONNX model; the pane's own if not given.
    trained_on : str
        What it was trained on, in a few words for the people who read the page. Needed unless the pane's promise is about
        the training data.
    publish_model : bool
        That the owner wants the model to be public.
    words : PageWords, optional
        In place of the pane's.
    person : object, optional
        Whom the form shows first; nobody, the middle of the private rows, if not given.
    """
    where = Path(output)
    if "rows" in pane.parts and pane.private_rows.sampling_rate < 1:
        raise InvalidInput(
            "this pane is of a sample of the rows, and what that adds to bands is not worked out in browsers; release it "
            "without sampling_rate, or write pages with pane.explain(person).to_html(...)"
        )
    asked = checked_model(pane, model)
    _check_permission(pane, trained_on, publish_model=publish_model)
    _check_output(where)
    files = site_files(pane, asked, trained_on=trained_on, words=words, person=person)
    if where.suffix.lower() in ONE_FILE:
        _write(where, one_file(files))
        return where
    _clear(where)
    where.mkdir(exist_ok=True)
    for name, content in files.items():
        _write(where / name, content)
    return where


def checked_model(pane: Pane, model: Model | None) -> Model:
    """The model that was given, or the pane's own, if a browser can run it."""
    asked = pane.model if model is None else model
    if asked is None:
        raise InvalidInput("a live page runs the model, and none was given: model=vt.Model('model.onnx'), or to Pane.load")
    if not isinstance(asked.predictor, OnnxPredictor):
        raise ModelError(f"a browser runs ONNX models, and {asked.name} is none; {EXPORT}")
    if any(output.type.startswith("seq") for output in asked.predictor._session.get_outputs()):
        raise ModelError(
            f"{asked.name} returns dictionaries, which no browser's runtime gives out; export it without them: "
            "skl2onnx.to_onnx(..., options={'zipmap': False})"
        )
    return asked


def _check_permission(pane: Pane, trained_on: str, *, publish_model: bool) -> None:
    if not publish_model:
        raise InvalidInput(f"{WHY_PUBLISH}. If that is what you want, say so: publish_model=True")
    if not isinstance(trained_on, str) or len(trained_on) > MOST_TRAINED_ON:
        raise InvalidInput(f"trained_on is {str(trained_on)[:60]!r}; it must be a text of at most {MOST_TRAINED_ON} letters")
    if not trained_on.strip() and needs_trained_on(pane):
        raise InvalidInput(
            "the page says what the model was trained on, because the promise does not cover that: give trained_on, such as "
            "'loans from 2015 to 2020, without names'"
        )


def needs_trained_on(pane: Pane) -> bool:
    """Whether the page has to say what the model was trained on: the promise is not about that."""
    return pane.guarantee.protects != "training-data"


def folder_bytes(written: Path) -> int:
    """The size of a page: of its file, or of all files that its folder lists."""
    if written.is_file():
        return written.stat().st_size
    return sum((written / name).stat().st_size for name in (*(_listed(written) or ()), MANIFEST, "service_worker.js"))


def _check_output(where: Path) -> None:
    """Refuse a place that cannot be written to, or that holds anything but a site."""
    if not where.parent.is_dir():
        raise InvalidInput(f"the page cannot be written to {str(where)!r}: there is no folder {str(where.parent)!r}")
    if where.suffix.lower() in ONE_FILE:
        if where.is_dir():
            raise InvalidInput(f"the page cannot be written to {str(where)!r}: it is a folder; name a file")
        return
    if where.exists() and not where.is_dir():
        raise InvalidInput(f"the page cannot be written to {str(where)!r}: it is a file; name a folder, or an .html file")
    if where.is_dir() and any(where.iterdir()) and _listed(where) is None:
        raise InvalidInput(
            f"the folder {str(where)!r} is not empty and holds no live page ({MANIFEST}); name another one, or empty it"
        )


def _listed(where: Path) -> list[str] | None:
    """The files of the site in a folder; None where there is none."""
    try:
        manifest = json.loads((where / MANIFEST).read_bytes())
        files = manifest["files"] if manifest["format"] == FORMAT else None
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return [*map(str, files)] if isinstance(files, dict) else None


def _clear(where: Path) -> None:
    """Remove the site that a folder holds, its list last; other files stay."""
    for name in [*(_listed(where) or []), MANIFEST]:
        if "/" not in name and "\\" not in name and (where / name).is_file():
            (where / name).unlink()


def _write(path: Path, content: bytes) -> None:
    try:
        path.write_bytes(content)
    except OSError as error:
        raise InvalidInput(f"the page cannot be written to {str(path)!r}: {error.strerror}") from error


# --- files ---------------------------------------------------------------------------------------------------------------


def site_files(
    pane: Pane, model: Model, *, trained_on: str = "", words: PageWords | None = None, person: object = None
) -> dict[str, bytes]:
    """Every file of a site by its name, the list of them last."""
    assets = built_assets()
    told = page_words_of(pane) if words is None else words
    start = None if person is None else _read_person(pane, person)
    assert isinstance(model.predictor, OnnxPredictor)
    with progress("a live page", 3) as advance:
        facts = page_facts(pane, model, trained_on=trained_on, words=told, start=start)
        advance(1)
        made = {"prepared.zip": prepared(pane, model), **_search(pane, model)}
        advance(1)
        files = {
            "index.html": b"",
            "style.css": style_sheet(),
            "page.js": assets["page.js"],
            "worker.js": assets["worker.js"],
            # Packed here, because many file servers pack nothing: 4 MB on the way instead of 14.
            "runtime.wasm": _packed_runtime(),
            "page.json": json_bytes(facts),
            "pane.pane": pane.to_bytes(),
            **made,
            "model.onnx": model.predictor.wrapped,
        }
        advance(1)
    files["index.html"] = _html(told, _title(told, model))
    listed = {name: digest(content) for name, content in files.items()}
    manifest = json_bytes({"format": FORMAT, "files": {**listed}})
    kept: dict[str, JsonValue] = {"sha256": digest(manifest), "files": {**listed, MANIFEST: digest(manifest)}}
    files["service_worker.js"] = b"const SITE = " + json.dumps(kept).encode() + b";\n" + assets["service_worker.js"]
    return {**files, MANIFEST: manifest}


def _search(pane: Pane, model: Model) -> dict[str, bytes]:
    """What the search for changes starts from; nothing where nobody may change anything, or a model has several classes."""
    try:
        fitted = counterfactual_on(pane, model)
        return {"search.zip": prepared_search(fitted)} if len(fitted.classes.models) == 1 else {}
    except InvalidInput:  # as on a person's page: the rest can be said
        return {}


def _title(words: PageWords, model: Model) -> str:
    return words.decision or model.name


def _read_person(pane: Pane, person: object) -> dict[str, Level]:
    raw = pane.schema.read_points(person)
    if len(raw) != 1:
        raise InvalidInput(f"{len(raw)} people were given; a page starts with one")
    return {name: values.tolist()[0] for name, values in pane.schema.frame(raw).items()}


def built_assets() -> dict[str, bytes]:
    """The scripts that ``make web`` builds, or a sentence that they are not there."""
    missing = [name for name in (*SCRIPTS, RUNTIME) if not (ASSETS / name).is_file()]
    if missing:
        raise InvalidInput(
            f"the scripts of live pages are not built ({missing[0]} is missing): run `make web` in the source folder, which "
            "needs Node 20 or newer; installed releases have them"
        )
    return {name: (ASSETS / name).read_bytes() for name in SCRIPTS}


@cache
def _packed_runtime() -> bytes:
    return gzip.compress((ASSETS / RUNTIME).read_bytes(), 9, mtime=0)


def style_sheet() -> bytes:
    """That of all pages, and what only live pages have."""
    return (SHOWN / "style.css").read_bytes() + (TEMPLATES / "live.css").read_bytes()


# --- HTML ----------------------------------------------------------------------------------------------------------------


def one_file(files: Mapping[str, bytes]) -> bytes:
    """All of a site as one HTML file that needs no server; what is large in it is packed and written in base64."""
    facts = json.loads(files["page.json"])
    words = PageWords(language=facts["catalogue"]["language"], decision=facts["words"]["decision"])
    inside = {name: files[name] for name in files if name not in ("index.html", "style.css", "page.js", "service_worker.js")}
    packed = {name: _packed(name, content) for name, content in inside.items() if name != MANIFEST}
    listed = {name: digest(content) for name, content in packed.items()}
    # Hashes that people are shown are those of the files themselves.
    shown = {name: digest(files[name]) for name in ("pane.pane", "model.onnx")}
    manifest = json_bytes({"format": FORMAT, "files": {**listed}, "shown": {**shown}})
    blocks = [(name, base64.b64encode(content).decode()) for name, content in (packed | {MANIFEST: manifest}).items()]
    style, script = style_sheet().decode(), files["page.js"].decode()
    return _html(words, words.decision or facts["model"], style=style, script=script, blocks=blocks)


def _packed(name: str, content: bytes) -> bytes:
    return content if name == "runtime.wasm" else gzip.compress(content, 9, mtime=0)


def _html(
    words: PageWords, title: str, *, style: str = "", script: str = "", blocks: list[tuple[str, str]] | None = None
) -> bytes:
    sentences = catalogue(words.language)
    # An end tag inside a script would end it; the minifier writes none, and this says so if it ever does.
    if "</script" in script.lower() or "</style" in style.lower():
        raise InvalidInput("a script of the live page holds an end tag and cannot be put into one file; write a folder")
    text = (
        _environment()
        .get_template("live.html")
        .render(
            language=sentences.language,
            direction=sentences.direction,
            say=sentences.say,
            title=title,
            policy=_policy(style, script),
            # Ours, and nobody's data: the only two that are not escaped.
            style=Markup(style),  # noqa: S704
            script=Markup(script),  # noqa: S704
            blocks=blocks or [],
        )
    )
    return text.encode()


def _policy(style: str, script: str) -> str:
    """What the page may load: its own files, or in one file nothing but the script and style with these hashes."""
    end = "img-src data:; base-uri 'none'; form-action 'none'"
    if not script:
        own = "script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; connect-src 'self'; style-src 'self'"
        return f"default-src 'none'; {own}; {end}"
    inline = f"script-src {_hash(script)} 'wasm-unsafe-eval'; worker-src blob:; style-src {_hash(style)}"
    return f"default-src 'none'; {inline}; {end}"


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


@cache
def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES), autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )

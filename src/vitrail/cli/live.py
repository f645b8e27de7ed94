"""`vitrail page`: a live page of a pane and its model, a folder or one file. Free; hands out the model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import InvalidInput, ModelError
from . import declarations as options
from .answering import with_notes
from .inputs import existing, points_of
from .printing import print_care, print_lines

EMBEDDED, ONNX = "embedded", ".onnx"


@options.command
def page(
    pane: options.PaneFile,
    reading: options.ReadingOptions,
    where: Annotated[
        Path,
        typer.Option(
            "--output-file", "-o", metavar="FOLDER|PAGE.html", help="A folder to write, or one file that has it all."
        ),
    ],
    model: Annotated[
        str, typer.Option("--model", metavar="M.onnx", help="An ONNX file, or embedded, if the pane holds its model.")
    ],
    publish_model: Annotated[
        bool, typer.Option("--publish-model", help="That you want the model to be public: whoever has the page has it.")
    ] = False,
    trained_on: Annotated[
        str, typer.Option("--trained-on", metavar="TEXT", help="What the model was trained on; the page says it.")
    ] = "",
    words: Annotated[
        Path | None, typer.Option("--words", metavar="W.toml", help="The owner's words, in place of the pane's.")
    ] = None,
    person: Annotated[
        str | None,
        typer.Option("--person", metavar="P.json", help="Whom the form shows first; the middle of the rows if not given."),
    ] = None,
    about: Annotated[
        str | None, typer.Option("--about", metavar="NAME", help="Which of the pane's models, if it has several.")
    ] = None,
) -> None:
    """Write a page on which a pane and an ONNX model run in the reader's own browser, without a server. Free."""
    from ..live.site import EXPORT, WHY_PUBLISH, folder_bytes, needs_trained_on, write_page
    from ..pane.pane import Pane
    from ..show.page_words import PageWords

    if not publish_model:
        raise InvalidInput(f"{WHY_PUBLISH}. If that is what you want, say --publish-model")
    if model != EMBEDDED and Path(model).suffix.lower() != ONNX:
        raise ModelError(f"--model is {model!r}; a browser runs ONNX models; {EXPORT}")
    if model == EMBEDDED and reading.given:
        raise InvalidInput("--output, --range, --inputs and --unknown say how a model's file is read; give its file")
    path = existing(pane, "pane")
    given = model if model == EMBEDDED else reading.read(model) if reading.given else existing(Path(model), "model")
    told = None if words is None else PageWords.load(existing(words, "words"))
    opened = with_notes(lambda: Pane.load(path, model=given))
    opened = opened if about is None else opened.about(about)
    if needs_trained_on(opened) and not trained_on.strip():
        raise InvalidInput(
            "the page says what the model was trained on, because the pane's promise does not cover that: say it with "
            "--trained-on, as in --trained-on 'loans from 2015 to 2020, without names'"
        )
    start = None if person is None else points_of(person, opened.manifest.target)
    how = {"trained_on": trained_on, "publish_model": publish_model, "words": told, "person": start}
    written = write_page(opened, where, **how)  # type: ignore[arg-type]
    print_care(["The model is part of the page: it is public as soon as the page is."])
    size = folder_bytes(written) / 1e6
    if written.is_dir():
        print_lines(
            f"Written: {written} ({size:.1f} MB). Look at it: python -m http.server --directory {written}, then open "
            "http://localhost:8000. Any static host serves it; without a network it works after a first visit over https."
        )
    else:
        print_lines(f"Written: {written} ({size:.1f} MB), one file that opens without a server or a network.")

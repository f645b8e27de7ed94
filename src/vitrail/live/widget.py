"""The live page in a notebook: ``pane.explore(person)``. The one-file page in a sandboxed frame; nothing is sent anywhere.

Everything that a notebook shows is stored in its file: who passes the notebook on passes the model on. Exploring asks for no
``publish_model``, because nothing is published by looking, and a line above the frame says what the notebook now holds.
"""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from ..model import Model
from ..pane import Pane
from .site import checked_model, one_file, site_files

HEIGHT = 820
HOLDS_MODEL = (
    "This output holds the pane and the model, and is saved with the notebook: clear it before you pass the notebook on."
)


@dataclass(frozen=True, eq=False)
class LivePage:
    """A live page that notebooks show; ``html`` is the whole of it, as ``vitrail page -o page.html`` writes it.

    Attributes
    ----------
    html : str
        One file that needs no server.
    height : int
        Of the frame, in pixels.
    """

    html: str
    height: int = HEIGHT

    def __repr__(self) -> str:
        return f"LivePage({len(self.html) / 1e6:.1f} MB; shown by notebooks, or save .html)"

    def _repr_html_(self) -> str:
        # No allow-same-origin: what runs in the frame sees neither the notebook nor its server.
        frame = f'sandbox="allow-scripts" style="width:100%;height:{self.height}px;border:0" srcdoc="{escape(self.html)}"'
        return f'<p><small>{HOLDS_MODEL}</small></p><iframe title="A live page" {frame}></iframe>'

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}


def explore(pane: Pane, person: object = None, *, model: Model | None = None, height: int = HEIGHT) -> LivePage:
    """The live page of a pane, for a notebook.

    Parameters
    ----------
    pane : Pane
        With private rows and, unless ``model`` is given, an ONNX model.
    person : object, optional
        Whom the form shows first.
    model : Model, optional
        Another model than the pane's, in ONNX.
    height : int
        Of the frame, in pixels.
    """
    asked = checked_model(pane, model)
    return LivePage(one_file(site_files(pane, asked, person=person)).decode(), height)

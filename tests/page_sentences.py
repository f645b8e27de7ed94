"""The sentences that a person's page asks its catalogue for: found in Python, in templates and in the live page."""

import ast
import re
from pathlib import Path

from vitrail.results.band_claim import BandClaim
from vitrail.show.letter import GUESSES
from vitrail.show.style import TEMPLATES

ROOT = Path(__file__).resolve().parents[1]
SHOW = ROOT / "src" / "vitrail" / "show"
HELD_IN = {"sentence", "said"}
"""Names that letter.py gives to sentences before it says them."""
_IN_TEMPLATE = re.compile(r'\bsay\("((?:[^"\\]|\\.)*)"')


def in_python(path: Path) -> set[str]:
    """Texts that are said, or held to be said."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "say" and node.args:
            found |= texts_of(node.args[0])
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in HELD_IN:
            found |= texts_of(node.value)
    return found


def texts_of(node: ast.expr) -> set[str]:
    """Of a text, or of a choice between two."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    return texts_of(node.body) | texts_of(node.orelse) if isinstance(node, ast.IfExp) else set()


def all_sentences() -> set[str]:
    """Every sentence that a page may say."""
    templates = "\n".join(path.read_text(encoding="utf-8") for path in TEMPLATES.glob("*.html"))
    pages = [*(ROOT / "web" / "src").glob("*.ts"), *(SHOW.parent / "live" / "templates").glob("*.html")]
    live = "\n".join(path.read_text(encoding="utf-8") for path in pages)
    found = {text.replace('\\"', '"') for text in _IN_TEMPLATE.findall(templates + live)}
    return (
        found
        | {*GUESSES.values()}
        | in_python(SHOW / "letter.py")
        | in_python(SHOW.parent / "pane" / "person.py")
        | in_python(SHOW.parent / "pane" / "letters.py")
        | {text for claim in BandClaim for text in (claim.sentence(), claim.mark)}
    )

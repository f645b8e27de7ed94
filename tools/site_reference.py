"""The reference, a page for every object: a hook of MkDocs (mkdocs.yml names it).

``docs/reference.md`` lists the public modules, as ``::: vitrail.room.module`` under a heading for each room. In the site a
table of the module's objects takes the place of that line, and every object has a page of its own: its docstring, its
signature, and the lines of the repository where it stands. Nothing else has to be written down when an object is added.

A module's objects are what its ``__all__`` names. Where it has none, they are the classes and functions that ``vitrail``
itself offers, errors, and whatever has a docstring with sections (Parameters, Examples): helpers have a line.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import griffe
from mkdocs.structure.files import File

import vitrail

ROOT = Path(__file__).resolve().parent.parent
LISTED = re.compile(r"^::: (vitrail[\w.]*)$", re.MULTILINE)
ROOM = re.compile(r"^## (.+)$", re.MULTILINE)
SECTION = re.compile(r"^\s*-{4,}\s*$", re.MULTILINE)
ROLE = re.compile(r":(?:func|meth|class|mod|attr|data):(<code>)")
FILE = "https://github.com/vitrail/vitrail/blob/main/{file}"
LINES = FILE + "#L{first}-L{last}"
INDEX = "reference.md"


@dataclass(frozen=True)
class Entry:
    """An object with a page.

    Parameters
    ----------
    path : str
        Where it is defined, dotted.
    name : str
        What a user writes: ``vt.Pane`` or ``vitrail.audit.shadow.Networks``.
    summary : str
        The first sentence of its docstring.
    source : str
        The address of its lines.
    """

    path: str
    name: str
    summary: str
    source: str

    @property
    def page(self) -> str:
        return f"reference/{self.path.removeprefix('vitrail.')}.md"

    @property
    def short(self) -> str:
        return self.name.rpartition(".")[2]


@cache
def library() -> Any:
    return griffe.load("vitrail", search_paths=[str(ROOT / "src")], resolve_aliases=True, resolve_implicit=True)


def target(module: Any, name: str) -> Any:
    """What a module calls by this name, where it is defined; ``None`` where griffe does not know."""
    member = module.members.get(name)
    if member is None or not member.is_alias:
        return member
    try:
        return member.final_target
    except griffe.AliasResolutionError:
        return None


@cache
def offered() -> dict[str, str]:
    """Names that users write, by where the object is defined: ``vt.X``, and ``vt.room.x`` for what offered rooms hold."""
    names: dict[str, str] = {}
    rooms: dict[str, str] = {}
    for name in vitrail.__all__:
        found = target(library(), name)
        if found is None:
            raise LookupError(f"vitrail.{name} is offered and cannot be found in the sources")
        if not found.is_module:
            names[found.path] = f"vt.{name}"
            continue
        for inner in found.exports or [one for one in found.members if not one.startswith("_")]:
            reached = target(found, inner)
            if reached is not None and (reached.is_class or reached.is_function):
                rooms.setdefault(reached.path, f"vt.{name}.{inner}")
    return {**rooms, **names}


def is_error(found: Any) -> bool:
    return bool(found.is_class and any(str(base).endswith(("Error", "Warning", "Exception")) for base in found.bases))


def entry_of(found: Any) -> Entry:
    doc = found.docstring.value if found.docstring else ""
    file = Path(found.filepath).resolve().relative_to(ROOT)
    return Entry(
        path=found.path,
        name=offered().get(found.path, found.path),
        summary=" ".join(doc.split("\n\n")[0].split()),
        source=LINES.format(file=file, first=found.lineno, last=found.endlineno),
    )


def entries_of(module_path: str) -> Iterator[Entry]:
    """The objects of a module, in the order of ``__all__`` or of the file."""
    module = library()[module_path.removeprefix("vitrail.")]
    exported = module.exports
    for name in exported if exported is not None else module.members:
        if exported is None and (name.startswith("_") or module.members[name].is_alias):
            continue
        found = target(module, name)
        if found is None or not (found.is_class or found.is_function) or not found.path.startswith("vitrail."):
            continue
        sections = found.docstring is not None and SECTION.search(found.docstring.value) is not None
        if exported is not None or sections or found.path in offered() or is_error(found):
            yield entry_of(found)


@cache
def rooms() -> tuple[tuple[str, tuple[tuple[str, tuple[Entry, ...]], ...]], ...]:
    """Headings of the index, the modules under each, and their objects; an object stands where it is listed first."""
    text = (ROOT / "docs" / INDEX).read_text(encoding="utf-8")
    seen: set[str] = set()
    found = []
    parts = ROOM.split(text)
    for heading, body in zip(parts[1::2], parts[2::2], strict=True):
        modules = []
        for module in LISTED.findall(body):
            fresh = tuple(entry for entry in entries_of(module) if entry.path not in seen)
            seen.update(entry.path for entry in fresh)
            modules.append((module, fresh))
        if modules:
            found.append((heading, tuple(modules)))
    return tuple(found)


def entries() -> list[Entry]:
    return [entry for _, modules in rooms() for _, found in modules for entry in found]


def page_of(entry: Entry) -> str:
    """The source of an object's page, for mkdocstrings."""
    title = entry.name if entry.name.startswith("vt.") else entry.short
    return (
        f"---\ntitle: {entry.short}\nsource: {entry.source}\n---\n\n"
        f"::: {entry.path}\n    options:\n      heading: {title}\n      heading_level: 1\n      members_order: source\n"
    )


def table_of(module: str) -> str:
    """What stands in the index instead of the module's line."""
    listed = library()[module.removeprefix("vitrail.")]
    words = listed.docstring.value.split("\n\n")[0] if listed.docstring else ""
    home = Path(listed.filepath).resolve().relative_to(ROOT)
    lines = [f"### `{module}`", "", " ".join(words.replace("``", "`").split()), ""]
    lines += [f"Source: [`{home}`]({FILE.format(file=home)})", "{ .source-link }", ""]
    found = next(entries for _, modules in rooms() for name, entries in modules if name == module)
    if found:
        lines += ["| object | |", "|---|---|"]
        lines += [
            f"| [`{entry.name if entry.name.startswith('vt.') else entry.short}`]({entry.page}) | {cell(entry.summary)} |"
            for entry in found
        ]
    return "\n".join(lines)


def cell(summary: str) -> str:
    return summary.replace("``", "`").replace("|", "\\|")


# --- what MkDocs calls -----------------------------------------------------------------------------------------------------


def on_config(config: Any) -> Any:
    """Put the objects' pages into the navigation, by room."""
    by_room = [
        {heading: [{entry.short: entry.page} for _, found in modules for entry in found]}
        for heading, modules in rooms()
        if any(found for _, found in modules)
    ]
    for section in config.nav:
        if isinstance(section, dict) and INDEX in (section.get("Reference") or ()):
            section["Reference"] = [*section["Reference"], *by_room]
    return config


def on_files(files: Any, config: Any) -> Any:
    """Add a page for every object."""
    for entry in entries():
        files.append(File.generated(config, entry.page, content=page_of(entry)))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Replace the modules' lines in the index by tables; give the landing page the whole width."""
    if page.is_homepage:
        page.meta["hide"] = ["navigation", "toc"]
    if page.file.src_uri != INDEX:
        return markdown
    return LISTED.sub(lambda match: table_of(match[1]), markdown)


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Show where an object stands in the repository, under its name."""
    html = ROLE.sub(r"\1", html)
    source = page.meta.get("source")
    if not source:
        return html
    home = source.partition("/main/")[2].partition("#")[0]
    return html.replace("</h1>", f'</h1>\n<p class="source-link">Source: <a href="{source}">{home}</a></p>', 1)

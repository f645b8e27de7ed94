"""The command and what it does with errors: ours become one sentence on standard error, and exit code 2.

A traceback is shown with ``--debug`` only, and never with local variables: they may hold rows. For the same reason an error
that is not ours is named by its kind, without its message.
"""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup

from .. import __version__
from ..errors import ModelError, VitrailError
from . import attacks, audit, desk, generic, label, ledger, live, maps, paid, panes, serve, views
from .inputs import MAPS, in_options

EXIT_REFUSED = 2
EXIT_UNEXPECTED = 70  # EX_SOFTWARE of sysexits.h
UNEXPECTED = (
    "something unexpected went wrong ({}). What was charged stays charged; `vitrail budget` shows it. Run `vitrail --debug "
    "...` to see where it happened."
)

_MARKUP: Literal["rich"] | None = "rich" if sys.stdout.isatty() else None


class _Commands(TyperGroup):
    """The commands. `report` is one word for two: of private rows, or of a pane; `explain` and `show` of a pane or maps."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that the words name."""
        if args and args[0] == "report" and any(word.lower().endswith(paid.PANE) for word in args[1:]):
            args = ["report-pane", *args[1:]]
        if args and args[0] in ("explain", "show") and _names_maps(args[1:]):
            args = [f"{args[0]}-maps", *args[1:]]
        return super().resolve_command(ctx, args)


def _names_maps(words: list[str]) -> bool:
    """Whether trained maps are what a command is about, and not the model of a pane."""
    of_a_pane = any(word.lower().endswith(paid.PANE) or word.startswith("--model") for word in words)
    return not of_a_pane and any(word.lower().endswith(MAPS) for word in words)


_group = partial(typer.Typer, no_args_is_help=True, rich_markup_mode=_MARKUP)
app = _group(
    name="vitrail",
    cls=_Commands,
    add_completion=False,
    pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
_ledger = _group(help="Look at a ledger, entry by entry; copy it; free reservations.")
_schema = _group(help="Check a schema, and points against it.")
_ANY = (generic.curve, generic.ranking)
_PAID = (
    paid.quote,
    paid.marginals,
    paid.ask,
    paid.counterfactual,
    paid.report,
    paid.groups,
    *_ANY,
    paid.release,
    maps.train,
)
_FREE = (panes.show, panes.explain, panes.rows, live.page, label.label, ledger.budget)
_OWN = (desk.init, desk.doctor, views.texts, views.pictures)
for command in (*_OWN, *_PAID, *_FREE):
    app.command(command.__name__)(command)
app.command("report-pane", hidden=True)(panes.report_pane)
app.command("explain-maps", hidden=True)(maps.explain_maps)
app.command("show-maps", hidden=True)(maps.show_maps)
for command in (ledger.verify, ledger.backup, ledger.entries, ledger.reservations, ledger.free, ledger.export):
    _ledger.command(command.__name__)(command)
_schema.command("check")(panes.check_schema)
for command in (attacks.reconstruction, attacks.influence, attacks.extraction, attacks.attribute):
    audit.app.command(command.__name__)(command)
for name, commands in (("audit", audit.app), ("ledger", _ledger), ("schema", _schema), ("serve", serve.app)):
    app.add_typer(commands, name=name)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"vitrail {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show where an error came from.")] = False,
) -> None:
    """Explain models from private data, under differential privacy, with a bill for every epsilon."""


def main() -> None:
    """Run the command line. Errors of ours are one sentence, and exit code 2."""
    debug = "--debug" in sys.argv[1:]
    try:
        app()
    except Exception as error:
        if debug:
            raise
        ours = isinstance(error, VitrailError)
        sentence = str(error) if ours else UNEXPECTED.format(type(error).__name__)
        sentence = in_options(sentence) if isinstance(error, ModelError) else sentence
        typer.echo(f"Error: {sentence}", err=True)
        sys.exit(EXIT_REFUSED if ours else EXIT_UNEXPECTED)

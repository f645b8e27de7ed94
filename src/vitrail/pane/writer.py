"""release: pay once for a pane.

*What one price buys.* Each part is bought from an explainer that stands on its own, and carries the argument for its bound
beside its code; the prices are whole units of the ledger that add up to no more than the price of the pane (``plan``), the
ledger's filter adds them up, and everything else here is post-processing. Rows come before curves, because curves use their
histograms; the synopsis comes first, because its probe finds a model that cannot be used before anything is charged.

*Before the first charge*: every explainer is made once, the model is tried on public rows as the vault will try it, and the
whole price is compared with what is left: all parts are refused together, or none is. A release that was begun before is
not held against itself: its parts are replayed, free, and the rest is charged. Tests: tests/pane,
tests/audit/test_pane_audit.py.
"""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from importlib import metadata
from typing import TYPE_CHECKING, Any, Literal

from ..accounting import Cost, JsonValue, epsilon_of, rounded_down, rounded_up
from ..errors import BudgetExceeded, InvalidInput
from ..explain.private_rows import private_rows
from ..explain.promises import basis_of, guarantee_of
from ..explain.trying import telling_charge
from ..guarantee import question_mu
from ..model import Model
from ..results.archive import MOST_BYTES, digest
from ..results.class_picture import ClassPicture
from ..results.codec import to_files
from ..results.private_rows import PrivateRows
from ..results.report import Report
from ..results.synopsis import Synopsis
from ..show import bill_of
from .histograms import marginals_of, with_drawn_densities
from .manifest import Line, Manifest, Part
from .models import MODEL_FILE, described, onnx_content
from .pane import Pane
from .parts import KINDS
from .plan import ROW_BINS, Plan

if TYPE_CHECKING:
    from ..ledger import Statement
    from ..vault import Block, PrivateData

BEGUN = b"a pane was begun"
Bought = PrivateRows | Synopsis | Report | ClassPicture


def release(
    data: PrivateData,
    model: Model,
    *,
    epsilon: float | None = None,
    mu: float | None = None,
    parts: Literal["all"] | Sequence[str] = "all",
    weights: Mapping[str, float] | None = None,
    threshold: float | None = None,
    loss: str = "squared",
    loss_bound: float | None = None,
    embed_model: bool = False,
    key: str | None = None,
) -> Pane:
    """Pay once for everything that explains a model, as one file that may be published.

    Parameters
    ----------
    data : PrivateData
        The rows, their schema and their budget.
    model : Model
        What is explained.
    epsilon, mu : float
        The price of all of it, in one of the two currencies.
    parts : "all" or list of {"rows", "local", "pdp", "ale", "effects", "importance", "counterfactual"}
        What to release; ``"effects"`` is pdp and ale. ``"all"``: whatever the data allows (importance needs a target).
    weights : mapping of str to float, optional
        How the price is shared between the parts, where the default (``vitrail.pane.plan.WEIGHTS``) does not suit.
    threshold : float, optional
        From which output on a row is of class 1, for counterfactuals; the middle of the model's range if not given.
    loss, loss_bound
        Of permutation importance; see :class:`PermutationImportance`.
    embed_model : bool
        Write the model into the file. For ONNX models only, which can be read without running code.
    key : str, optional
        A name for a model that is a bare function, so that releasing again replays the stored releases.

    Returns
    -------
    Pane
        With the model. ``pane.save("x.pane")`` writes the file.

    Raises
    ------
    BudgetExceeded
        If too little is left for all of it. Nothing was charged. Releasing the same again is free.

    Examples
    --------
    >>> import numpy as np, vitrail as vt
    >>> schema = vt.Schema({"age": vt.Numeric(0, 100), "smoker": vt.Categorical(["no", "yes"])})
    >>> rows = {"age": np.linspace(0, 100, 20_000), "smoker": np.tile(["no", "yes"], 10_000)}
    >>> data = vt.PrivateData(rows, schema, name="patients", n_rows_public=20_000, budget=vt.Budget(1, 1e-6))
    >>> model = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0] + 0.2 * x[:, 2], range=(0, 1), name="risk")
    >>> pane = vt.release(data, model, epsilon=1.0, parts=["rows", "local", "pdp"])
    >>> pane.parts, round(data.budget.spent_epsilon, 3)
    (('rows', 'local', 'pdp'), 1.0)
    >>> vt.Pane.from_bytes(pane.to_bytes()).local({"age": 80, "smoker": "yes"}).method  # no model at hand
    'synopsis'
    """
    plan = Plan(data, model, parts=parts, weights=weights, threshold=threshold, loss=loss, loss_bound=loss_bound, key=key)
    whole = question_mu(epsilon, mu, data.delta)
    plan.check(whole)
    content = onnx_content(model) if embed_model else None
    if content is not None and len(content) > MOST_BYTES // 2:
        raise InvalidInput(f"the model has {len(content) >> 20} MiB, too much for a pane; leave embed_model out")
    _try_model(data, model)
    _refuse_what_does_not_fit(plan, whole)
    last = max((entry.seq for entry in data.budget.entries), default=0)
    bought = _buy(plan, whole)
    cost = sum((part.cost for part in bought.values()), Cost())
    lines = _lines(data.budget, last, cost) or _part_lines(bought, data)
    manifest, files = _written(plan, bought, cost, lines, content)
    return Pane(Manifest.read(manifest, files, "the pane"), files, model)


def _buy(plan: Plan, mu: float) -> dict[str, Any]:
    """Pay for the parts, one after the other; by name, in the order of the file."""
    data, prices = plan.data, plan.prices(mu)
    found: dict[str, Any] = {}
    if "local" in prices:
        found["local"] = plan.local().fit(mu=prices["local"], kind="moments")
    if "rows" in prices:
        found["rows"] = private_rows(data, mu=prices["rows"], columns=data.feature_schema.names, bins=ROW_BINS)
    if "global" in prices:
        marginals = marginals_of(found["rows"]) if "rows" in found else None
        with telling_charge(data, sum((part.cost for part in found.values()), Cost())):
            report = plan.report(mu)(mu=prices["global"], marginals=marginals)
        found["global"] = report if marginals is None else with_drawn_densities(report)
    if "counterfactual" in prices:
        found["counterfactual"] = plan.counterfactual()(mu=prices["counterfactual"])
    return {name: found[name] for name in KINDS if name in found}


def _try_model(data: PrivateData, model: Model) -> None:
    """Ask the vault to try the model on public rows, as every part will: what is wrong with it is said before any charge."""
    from ..vault import BoundedSum, rehearse

    def outputs(block: Block) -> Any:
        return ((block.predictions(model) - model.lo) / model.width)[:, None]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what there is to warn of is said when the parts are asked for
        rehearse(
            BoundedSum(outputs, size=1, l2_bound=1.0),
            {name: [] for name in data.schema},
            data.schema,
            mu=1.0,
            n_rows_public=data.n_rows_public,
            draws=1,
            target=data.target,
            neighbours=data.neighbours,
        )


# --- the price -------------------------------------------------------------------------------------------------------


def _refuse_what_does_not_fit(plan: Plan, mu: float) -> None:
    """Raise before the first charge if the account, or the analyst's own cap, cannot pay for all parts."""
    data, statement = plan.data, plan.data.budget
    needed = sum((Cost.of_mu(price) for price in plan.prices(mu).values()), Cost())
    begun = _identity(plan, mu)
    if begun is not None and data.kept(begun) is not None:
        return  # what it paid is replayed, and the ledger decides about the rest
    part = None if data.part is None else statement.of_part(data.part)
    spent, left = (statement.spent, statement.remaining_epsilon) if part is None else (part.exposed, part.remaining_epsilon)
    if not spent + needed <= statement.capacity:
        raise _refusal(needed, data.delta, left, f"account {statement.account!r}", "dataset")
    own = next((line for line in statement.analysts if line.analyst == data.analyst), None)
    # How much of a cap one part of the rows has used is not in the statement: there the ledger decides alone.
    if own is not None and own.capacity is not None and part is None and not own.spent + needed <= own.capacity:
        whose = f"the cap of analyst {data.analyst!r}"
        raise _refusal(needed, data.delta, own.remaining_epsilon or 0.0, whose, f"analyst {data.analyst}")
    if begun is not None:
        data.keep(begun, BEGUN)


def _refusal(needed: Cost, delta: float, left: float, whose: str, cap: str) -> BudgetExceeded:
    asked = epsilon_of(needed.mu, delta)
    return BudgetExceeded(
        f"This pane would cost epsilon {rounded_up(asked)}, and the largest question that {whose} can still pay for is "
        f"epsilon {rounded_down(left)}. Nothing was charged.",
        requested_epsilon=asked,
        remaining_epsilon=left,
        cap=cap,
    )


def _identity(plan: Plan, mu: float) -> str | None:
    """A name for this release, by which it is known again; None where the model has none."""
    model = plan.model.identity(plan.data.feature_schema, plan.key)
    if model is None:
        return None
    said = [model, plan.prices(mu), plan.shares(mu), plan.threshold]
    return "pane " + hashlib.sha256(json.dumps(said).encode()).hexdigest()


def _lines(statement: Statement, last: int, cost: Cost) -> tuple[Line, ...]:
    """The ledger's lines of this release, charges of replayed answers included; none if somebody else asked meanwhile."""
    seen: set[int] = set()
    for entry in statement.entries:
        if entry.seq > last and entry.kind == "charged":
            seen.add(entry.seq)
        elif entry.seq > last and entry.kind == "replayed" and isinstance(of := entry.body.get("of"), int):
            seen.add(of)
    costs = {entry.seq: entry.cost for entry in statement.entries if entry.seq in seen}
    if sum(costs.values(), Cost()) != cost:
        return ()
    told = {line.seq: line for line in bill_of(statement).lines if line.seq in seen and line.paid}
    return tuple(Line(seq, line.time_utc[:10], line.what, costs[seq], line.epsilon) for seq, line in sorted(told.items()))


def _part_lines(bought: Mapping[str, Any], data: PrivateData) -> tuple[Line, ...]:
    day = data.budget.entries[-1].time_utc[:10]
    return tuple(
        Line(0, day, KINDS[name].title, part.cost, epsilon_of(part.cost.mu, data.delta)) for name, part in bought.items()
    )


# --- the file --------------------------------------------------------------------------------------------------------


def _written(
    plan: Plan, bought: Mapping[str, Bought], cost: Cost, lines: tuple[Line, ...], content: bytes | None
) -> tuple[dict[str, JsonValue], dict[str, bytes]]:
    """The manifest, as it will be read back, and the files."""
    data, parts = plan.data, {}
    files: dict[str, bytes] = {} if content is None else {MODEL_FILE: content}
    for name, part in bought.items():
        # Rows that the pane holds anyhow are not written twice; a reader gives them back (``Pane._picture``).
        kept = replace(part, rows=None) if isinstance(part, ClassPicture) else part
        made = {f"{name}/{file}": bytes_ for file, bytes_ in sorted(to_files(kept).items())}
        files |= made
        share = round(part.cost.pico_mu_squared / cost.pico_mu_squared, 6)
        parts[name] = Part(part.FORMAT, share, {file: digest(bytes_) for file, bytes_ in made.items()})
    manifest = Manifest(
        tool=_tool(),
        created=max(line.date for line in lines),
        dataset=data.name,
        n_rows_public=data.n_rows_public,
        target=data.target,
        schema=data.schema,
        model=described(plan.model, content),
        guarantee=guarantee_of(data, basis_of(bought.values())),
        cost=cost,
        bill=lines,
        parts=parts,
    )
    return manifest.to_fields(), files


def _tool() -> str:
    try:
        return f"vitrail {metadata.version('vitrail')}"
    except metadata.PackageNotFoundError:  # run from a folder of sources
        return "vitrail"

"""One table of everything that is stored: by name an example, built by hand. A new stored class joins it."""

import numpy as np

import vitrail as vt
from vitrail.accounting import Basis
from vitrail.results import Density
from vitrail.results.band_claim import BandClaim
from vitrail.results.class_picture import ClassPicture
from vitrail.results.counterfactuals import WhatIf
from vitrail.results.mean_reasons import MeanReasons
from vitrail.results.synopsis import SCALES, Synopsis
from vitrail.schema.bins import Bins, bins_of
from vitrail.solve.counterfactual.codes import Code, IdentityCode, NetworkCode
from vitrail.solve.groups.layout import Layout, shares_of
from vitrail.solve.linear.coordinates import Partition
from vitrail.solve.linear.descent import HistoryFile, Past
from vitrail.solve.linear.tensors import part_shapes
from vitrail.solve.linear.weights import exponential, polynomial
from vitrail.solve.rows.histograms import blocks_of
from vitrail.solve.rows.network import Link

DRAW = np.random.default_rng(0)
COST = vt.Cost(10**11, 3, 10**31)
BASIS = Basis.of("one", vt.Cost(10**10)) | Basis.of("two", vt.Cost(10**10, 0, 0))
PROMISE = {"guarantee": vt.Guarantee.of(BASIS, 1e-6), "cost": COST}
PAID = {"guarantee": vt.Guarantee.of_mu(0.2, 1e-6, "replace-one"), "cost": vt.Cost.of_mu(0.2)}
SCHEMA = vt.Schema({"age": vt.Numeric(18, 90, integer=True), "sex": vt.Categorical(["f", "m"]), "pay": vt.Numeric(0, 1)})
ODD_NAME = 'Größe "x" <b>\n'

CURVE = vt.Curve(
    "age",
    "partial dependence",
    x=np.array([20.0, 40.0, 60.0]),
    y=np.array([0.1, -0.0, 0.4]),
    std=np.full(3, 0.01),
    density=Density(np.array([18.0, 50.0, 90.0]), np.array([0.7, 0.3])),
    notes=("One note.", "Another: é"),
    band_claim=BandClaim.MEASURED_95,
    **PROMISE,
)
LEVELS = vt.Curve(
    "sex", "any curve", ("f", "m"), np.array([0.5, 1e-300]), density=Density(None, np.array([0.4, 0.6])), **PAID
)
FLOAT_LEVELS = vt.Curve(("a", "b"), "any curve", (2.5, 0.5), np.array([0.5, 1.0]), categorical=True, **PAID)
LONG_CURVE = vt.Curve("pay", "any curve", np.arange(300.0), DRAW.normal(size=300), **PAID)
SURFACE = vt.Surface(
    ("age", "sex"),
    "partial dependence",
    (np.array([20.0, 60.0]), ("f", "m")),
    DRAW.normal(size=(2, 2)),
    std=np.ones((2, 2)),
    **PAID,
)
FLOAT_SURFACE = vt.Surface(("a", "b"), "partial dependence", ((2.5, 1.5), (1, 2)), DRAW.normal(size=(2, 2)), **PAID)
RANKING = vt.Ranking(
    ("age", "sex", "pay"),
    np.array([0.5, 0.1, 0.7]),
    kind="permutation importance",
    std=np.full(3, 0.1),
    own_std=np.full(3, 0.05),
    **PAID,
)
ATTRIBUTION = vt.Attribution(
    values=DRAW.normal(size=(2, 3)),
    base_values=np.array([0.3, 0.2]),
    columns=("age", "sex", ODD_NAME),
    points=({"age": 39, "sex": "Männlich", ODD_NAME: None}, {"age": 39.5, "sex": True, ODD_NAME: -(2**70)}),
    outputs=np.array([0.5, 0.25]),
    method="synopsis",
    lower=np.full((2, 3), -9.0),
    upper=np.full((2, 3), 9.0),
    coefficients=DRAW.normal(size=(2, 4)),
    intercepts=np.zeros(2),
    features=("age", "f", "m", "pay"),
    notes=("A note.",),
    **PROMISE,
)
COUNTERFACTUALS = vt.Counterfactuals(
    columns=("age", "sex"),
    points=({"age": 31, "sex": "f"}, {"age": 60, "sex": "m"}),
    outputs=(0.3, 0.9),
    classes=("no", 1),
    wanted=("yes", 0),
    answers=((WhatIf({"age": 45, "sex": "f"}, 0.2, 0.1, 0.7),), ()),
    messages=("", "Nothing was found."),
    total_CFs=2,
    model="risk",
    dataset="people",
    notes=("A note.",),
    **PAID,
)
BINS = tuple(bins_of(name, column, 4) for name, column in SCHEMA.items())
MARGINALS = vt.Marginals(
    "people", BINS, {one.name: DRAW.normal(100, 9, len(one)) for one in BINS}, sigma=3.5, n_rows_public=400, **PAID
)
EFFECTS = vt.Effects({"age": CURVE, "sex": LEVELS}, MARGINALS, surfaces={("age", "sex"): SURFACE}, **PAID)
ALE = vt.Effects({"pay": LONG_CURVE}, MARGINALS, **PAID)
REPORT = vt.Report(
    "people", "risk", 400, MARGINALS, EFFECTS, ALE, RANKING, {"pdp": 0.5, "ale": 0.5}, shap=RANKING, **PROMISE
)
GROUP_LAYOUT = Layout(("f", "m", ODD_NAME), (0.0, 0.25, 0.5, 1.0), 2, "binary", 0.0, 1.0, shares_of("binary"))
GROUP_TABLE = vt.GroupTable(
    "people", "risk", ("sex",), GROUP_LAYOUT, "ill is 1", DRAW.normal(90, 9, (3, 13)), 2.5, n_rows_public=400, **PAID
)
NUMBER_LAYOUT = Layout(
    tuple(f"g{number}" for number in range(20)), (-1.0, 0.0, 2.0), 1, "number", -5.0, 5.0, shares_of("number")
)
NUMBER_TABLE = vt.GroupTable(
    "people",
    "risk",
    ("age", "sex"),
    NUMBER_LAYOUT,
    "pay, a number",
    DRAW.normal(9, 9, (20, 10)),
    0.5,
    n_rows_public=400,
    **PROMISE,
)
ROW_BINS = (BINS[0], BINS[1], Bins("pay", ("a", "b", "c"), (0.0, 0.5, 0.5, 1.0)))
GROUPS = (np.arange(len(BINS[0])) * 20 // len(BINS[0]), np.array([0, 1]), np.array([0, 0, 1]))
PRIVATE_ROWS = vt.PrivateRows(
    dataset="people",
    schema=SCHEMA,
    target="sex",
    bins=ROW_BINS,
    groups=tuple(group.astype(np.intp) for group in GROUPS),
    links=(Link(0, ()), Link(2, (0,)), Link(1, (0, 2))),
    counts=tuple(DRAW.normal(100, 5, len(one)) for one in ROW_BINS),
    block_counts=tuple(DRAW.normal(100, 5, 0 if (b := blocks_of(one)) is None else int(b[-1]) + 1) for one in ROW_BINS),
    counts_sigma=5.0,
    noisy_tables={
        (0, 2): DRAW.normal(40, 9, (19, 1)),
        (0, 1): DRAW.normal(40, 9, (19, 1)),
        (1, 2): DRAW.normal(9, 1, (1, 1)),
    },
    tables_sigma=9.0,
    n_rows_public=400,
    sampled=SCHEMA.probe_rows(8),
    coarse_groups=(*(group.astype(np.intp) for group in GROUPS[:1]), *(np.arange(len(one)) for one in ROW_BINS[1:])),
    coarse_sigma=6.0,
    factors={(1, 2): DRAW.normal(0, 0.1, (2, 3))},
    **PAID,
)
MEAN_REASONS = MeanReasons(
    dataset="people",
    model="risk",
    schema=SCHEMA,
    players=("age", "sex", "pay"),
    clip=0.25,
    sizes=DRAW.random(3),
    means=DRAW.normal(size=3),
    stds=DRAW.random(3),
    per_row=DRAW.normal(size=(50, 3)),
    outputs=DRAW.random(50),
    expected=DRAW.random(3),
    excess=-0.01,
    excess_std=0.02,
    n_rows_public=400,
    **PAID,
)
SYNOPSIS = Synopsis(
    schema=SCHEMA,
    weight=exponential(0.5),
    labels="soft",
    intercept=True,
    output_range=(0, 1),
    cells=(),
    scales=dict.fromkeys(sorted(SCALES), 1.5),
    parts=tuple(DRAW.normal(size=shape) for shape in part_shapes(Partition(SCHEMA))),
    sigma=2.0,
    n_rows_public=400,
    dataset="people",
    **PAID,
)
WIDE = vt.Schema({f"c{number}": vt.Numeric(0, 1) for number in range(20)})
WIDE_SYNOPSIS = Synopsis(
    schema=WIDE,
    weight=polynomial(),
    labels="hard",
    intercept=False,
    output_range=(0.0, 1.0),
    cells=(),
    scales=dict.fromkeys(sorted(SCALES), 1.5),
    parts=tuple(DRAW.normal(size=shape) for shape in part_shapes(Partition(WIDE))),
    sigma=2.0,
    n_rows_public=400,
    dataset="people",
    **PAID,
)


def picture(code, **changes):
    given = {
        "dataset": "people",
        "schema": SCHEMA,
        "labels": ("no", "yes"),
        "threshold": 0.5,
        "scale": 1.5,
        "code": code,
        "sums": DRAW.normal(100, 9, (2, code.size + 1 + sum(map(len, BINS)))),
        "sums_sigma": 2.0,
        "bins": BINS,
        "rows": None,
        "n_rows_public": 400,
        "by": "predictions",
        "models": ("0" * 64, None),
        **PAID,
    }
    return ClassPicture(**{**given, **changes})


PICTURE = picture(IdentityCode(4))
LINEAR_PICTURE = picture(Code(np.eye(4)[:, :2], np.eye(4)[:2], np.zeros(4), np.ones(2)))
NETWORK = NetworkCode(DRAW.normal(size=(5, 2)), DRAW.normal(size=(3, 4)), 1.5)
NETWORK_PICTURE = picture(NETWORK, rows=PRIVATE_ROWS, labels=(0, 1))
HISTORY = HistoryFile(
    "{}",
    (
        Past(np.array([39.0, 1.0]), DRAW.normal(size=3), True, 0.1, np.array([0.5]), 0.0, 7, COST, basis=BASIS),
        Past(np.array([40.0, 0.0]), DRAW.normal(size=300), False, 0.0, None, 0.0, 0, vt.Cost()),
    ),
)

EXAMPLES = {
    "curve": CURVE,
    "curve over levels": LEVELS,
    "curve over float levels": FLOAT_LEVELS,
    "long curve": LONG_CURVE,
    "surface": SURFACE,
    "surface over float levels": FLOAT_SURFACE,
    "ranking": RANKING,
    "attribution": ATTRIBUTION,
    "counterfactuals": COUNTERFACTUALS,
    "marginals": MARGINALS,
    "effects": EFFECTS,
    "report": REPORT,
    "groups": GROUP_TABLE,
    "groups with numbers": NUMBER_TABLE,
    "private rows": PRIVATE_ROWS,
    "mean reasons": MEAN_REASONS,
    "synopsis": SYNOPSIS,
    "wide synopsis": WIDE_SYNOPSIS,
    "picture": PICTURE,
    "linear picture": LINEAR_PICTURE,
    "network picture": NETWORK_PICTURE,
    "history": HISTORY,
}

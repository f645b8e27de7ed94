"""The result type: what it refuses, what it computes, how it is sliced and printed."""

import copy
import pickle
import subprocess
import sys
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

import vitrail as vt
from vitrail.errors import InvalidInput
from vitrail.results import Contribution
from vitrail.results.band_claim import BandClaim

COLUMNS = ("age", "sex", "hours")


def explanation(**changes):  # type: ignore[no-untyped-def]
    values = np.array([[0.2, -0.05, 0.0], [-0.3, 0.1, 0.4]])
    fields = {
        "values": values,
        "base_values": np.array([0.3, 0.4]),
        "columns": COLUMNS,
        "points": ({"age": 39, "sex": "Male", "hours": 40.0}, {"age": np.int64(51), "sex": "Female", "hours": 12.5}),
        "outputs": np.array([0.5, 0.6]),
        "guarantee": vt.Guarantee.of_mu(0.2, 1e-6),
        "cost": vt.Cost.of_mu(0.2),
        "method": "statistics",
        "lower": values - 0.1,
        "upper": values + 0.1,
        "coefficients": np.arange(8.0).reshape(2, 4),
        "intercepts": np.array([0.1, 0.2]),
        "features": ("age", "sex=Female", "sex=Male", "hours"),
        "notes": ("Bands are nominal.",),
    }
    return vt.Attribution(**{**fields, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"values": np.zeros((2, 2))}, r"values .* shape \(2, 2\).*\(2, 3\)"),
        ({"values": np.zeros(3)}, "values .* shape"),
        ({"values": None}, "values of an explanation have dtype object"),
        ({"values": [[1, 2, 3], [1, 2]]}, "values of an explanation are not an array"),
        ({"values": [["1", "2", "3"]] * 2}, "must be real numbers"),
        ({"values": [[1, 2, np.nan], [1, 2, 3]]}, r"values .* nan at \(0, 2\)"),
        ({"base_values": np.zeros(3)}, "base_values .* shape"),
        ({"base_values": [0.0, np.inf]}, "base_values .* inf at"),
        ({"outputs": [np.nan, 0.0]}, "outputs .* nan at"),
        ({"lower": np.full((2, 3), -np.inf)}, "lower .* must be finite"),
        ({"lower": None}, "one end of its bands only"),
        ({"upper": None}, "one end of its bands only"),
        ({"upper": np.full((2, 3), -9.0)}, "band of column 'age' at point 0 has its lower end above"),
        ({"coefficients": np.zeros((2, 3))}, "coefficients .* shape"),
        ({"intercepts": np.zeros(3)}, "intercepts .* shape"),
        ({"columns": ("age", "age", "hours")}, "'age' twice"),
        ({"columns": "age"}, "give a list"),
        ({"columns": (1, 2, 3)}, "must be a text"),
        ({"columns": ()}, "at least one column"),
        ({"points": ()}, "at least one point"),
        ({"points": {"age": 1}}, "give a list of dictionaries"),
        ({"points": (1, 2)}, "point 0 of an explanation is int"),
        ({"points": ({"age": 1, "sex": "Male"},) * 2}, "lacks column 'hours'"),
        ({"points": ({"age": np.nan, "sex": "", "hours": 1},) * 2}, "column 'age' of point 0 of an explanation is nan"),
        ({"guarantee": None}, "guarantee of an attribution is NoneType; it must be a Guarantee"),
        ({"cost": 3}, "cost of an attribution is int"),
        ({"method": 3}, "method of an attribution is int"),
        ({"notes": "one"}, "notes .* give a list"),
    ],
)
def test_what_does_not_fit_is_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(InvalidInput, match=message):
        explanation(**changes)


def test_numbers_are_copied_and_cannot_be_changed() -> None:
    values = np.ones((2, 3))
    made = explanation(values=values)
    values[0, 0] = 7
    assert made.values[0, 0] == 1
    for name in ("values", "base_values", "outputs", "lower", "upper", "coefficients", "intercepts"):
        assert not getattr(made, name).flags.writeable


def test_what_points_hold_becomes_plain() -> None:
    point = {"age": np.float32(1.5), "sex": b"Male", "hours": Decimal("2.5"), "target": np.bool_(True)}
    (made, _) = explanation(points=(point, point)).points
    assert made == {"age": 1.5, "sex": "Male", "hours": 2.5, "target": True}
    assert [type(value) for value in made.values()] == [float, str, float, bool]


def test_the_gap_is_what_the_explanation_misses_of_the_output() -> None:
    assert explanation().gap == pytest.approx([0.05, 0.0])
    assert explanation(explains_output=False).gap is None
    frame = explanation().frame()
    assert frame["gap"] == pytest.approx([0.05] * 3 + [0.0] * 3)
    assert np.isnan(explanation(explains_output=False).frame()["gap"]).all()


def test_a_gap_above_the_largest_contribution_is_the_first_note_of_that_point_alone() -> None:
    made = explanation(outputs=np.array([0.7, 0.6]))
    assert made.notes == (made.caution, "Bands are nominal.")
    assert made.caution.startswith("At 1 of 2 points (0) this explanation misses the model's output by more than")
    assert made[0].notes[0] == (
        "This explanation misses the model's output by 0.25, more than its largest contribution (0.2): "
        "do not read it as the model's reasons."
    )
    assert made[1].notes == made[1][0].notes == ("Bands are nominal.",)
    assert made[[1, 0]].notes[0].startswith("At 1 of 2 points (1)")
    assert vt.Attribution.from_json(made.to_json()).notes == made.notes
    assert explanation(outputs=np.array([0.7, 0.6]), explains_output=False).notes == ("Bands are nominal.",)


def test_many_misses_are_counted_and_the_first_named() -> None:
    many = explanation(outputs=np.array([9.0, 9.0]))[[0] * 12]
    assert many.caution.startswith("At 12 of 12 points (0, 1, 2, 3, 4, 5, 6, 7 and others)")


def test_rounding_is_no_gap() -> None:
    constant = explanation(values=np.zeros((2, 3)), base_values=np.full(2, 0.1 + 0.2), outputs=np.full(2, 0.3))
    assert constant.gap is not None
    assert (constant.gap != 0).all()
    assert constant.caution == ""


def test_sums_that_overflow_are_no_reason_to_refuse_a_result() -> None:
    assert explanation(values=np.full((2, 3), 1.7e308), lower=None, upper=None).gap is not None


def test_fidelity_has_one_number_a_point() -> None:
    assert explanation(fidelity=[0.1, 0.2])[1].fidelity.tolist() == [0.2]
    with pytest.raises(InvalidInput, match=r"fidelity .* shape \(3,\)"):
        explanation(fidelity=np.zeros(3))


def test_base_values_and_contributions_add_up_to_predictions() -> None:
    made = explanation()
    assert made.predictions == pytest.approx([0.45, 0.6])
    assert made[1].base_value == 0.4
    with pytest.raises(InvalidInput, match="2 base values, one per point"):
        _ = made.base_value


@pytest.mark.parametrize(
    ("place", "ages"),
    [(0, [39]), (-1, [51]), (np.int64(1), [51]), (slice(None, None, -1), [51, 39]), ([1, 0, 1], [51, 39, 51])],
)
def test_slices(place: object, ages: list[int]) -> None:
    whole = explanation()
    part = whole[place]  # type: ignore[index]
    assert [point["age"] for point in part.points] == ages
    assert len(part) == len(ages)
    rows = [{39: 0, 51: 1}[age] for age in ages]
    for name in ("values", "base_values", "outputs", "lower", "upper", "coefficients", "intercepts"):
        assert np.array_equal(getattr(part, name), getattr(whole, name)[rows])
    assert (part.guarantee, part.cost, part.notes, part.features) == (
        whole.guarantee,
        whole.cost,
        whole.notes,
        whole.features,
    )


def test_masks_pick_points() -> None:
    assert explanation()[np.array([False, True])].points[0]["age"] == 51


def test_iteration_gives_single_points() -> None:
    assert [(len(one), one.base_value) for one in explanation()] == [(1, 0.3), (1, 0.4)]


@pytest.mark.parametrize("place", [2, -3, 1.0, "0", True, [0, 5], None])
def test_there_is_no_such_point(place: object) -> None:
    with pytest.raises(InvalidInput, match=r"this explanation has 2, numbered from 0 to 1"):
        explanation()[place]
    with pytest.raises(IndexError):
        explanation()[place]


def test_an_empty_slice_is_an_error() -> None:
    with pytest.raises(InvalidInput, match="picks none"):
        explanation()[5:]


def test_top_is_sorted_by_size() -> None:
    top = explanation().top(2, point=1)
    assert top == [
        Contribution("hours", 0.4, pytest.approx(0.3), 0.5, "12.5", 3),
        Contribution("age", -0.3, -0.4, pytest.approx(-0.2), "51", 3),
    ]
    assert [one.column for one in explanation().top(99)] == ["age", "sex", "hours"]
    assert explanation(lower=None, upper=None).top(1)[0].lower is None


@pytest.mark.parametrize("k", [0, -1, 1.5, True])
def test_k_is_a_whole_number(k: object) -> None:
    with pytest.raises(InvalidInput, match="k is"):
        explanation().top(k)


def test_certain_columns_are_those_whose_band_excludes_zero() -> None:
    made = explanation()
    assert made.certain() == ("age",)
    assert made.certain(1) == ("hours", "age")
    touching = explanation(lower=np.zeros((2, 3)), upper=np.ones((2, 3)))
    assert touching.certain() == ()
    with pytest.raises(InvalidInput, match="no noise bands"):
        explanation(lower=None, upper=None).certain()


def test_frames_have_a_line_per_point_and_column() -> None:
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame(explanation().frame())
    assert list(table.columns) == ["point", "column", "shown", "value", "lower", "upper", "base_value", "output", "gap"]
    line = table[(table["point"] == 1) & (table["column"] == "hours")].iloc[0]
    assert (line["shown"], line["value"], line["base_value"], line["output"]) == ("12.5", 0.4, 0.4, 0.6)
    assert np.isnan(explanation(lower=None, upper=None).frame()["lower"]).all()


def test_one_line_says_what_it_is() -> None:
    said = "Attribution(2 points, 3 columns, method='statistics', epsilon=0.8342 at delta=1e-06"
    assert repr(explanation()) == f"{said}, bands not calibrated)"
    assert repr(explanation(lower=None, upper=None)) == f"{said})"
    assert repr(explanation()[0]).startswith("Attribution(1 point, 3 columns")


def test_the_summary_shows_bars_bands_and_the_promise() -> None:
    text = str(explanation())
    assert text == explanation().summary()
    (age,) = [line for line in text.splitlines() if "age = 39" in line]
    assert age.split() == ["age", "=", "39", "│████████████", "+0.200", "[+0.100,", "+0.300]"]
    (sex,) = [line for line in text.splitlines() if "sex = Male" in line]
    assert "░│" in sex
    assert explanation().guarantee.sentence in text
    assert "Bands are nominal." in text
    assert "2 other columns" in explanation().summary(2)
    assert "[ ]" not in explanation(lower=None, upper=None).summary()


def test_names_cannot_move_the_cursor() -> None:
    name = "a\x1b[2J\u202e\n"
    text = explanation(columns=(name, "sex", "hours"), points=({name: "\x07", "sex": 1, "hours": 2},) * 2).summary()
    assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert all(line.isprintable() for line in text.splitlines())


def test_many_points_are_counted_not_listed() -> None:
    many = explanation()[[0, 1] * 10]
    assert "and 15 more points" in many.summary()
    assert "and 15 more points" in many._repr_html_()


def test_the_html_is_escaped_and_carries_the_promise() -> None:
    bad = "<script>alert(1)</script>\"'&"
    made = explanation(
        columns=(bad, "sex", "hours"), points=({bad: bad, "sex": 1, "hours": 2},) * 2, method=bad, notes=(bad,)
    )
    html = made._repr_html_()
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert made.guarantee.sentence in html
    assert "noise bands, not calibrated" in html
    assert "95 %" not in html
    assert "95 % noise bands" in replace(made, band_claim=BandClaim.NOISE_LAW_95)._repr_html_()
    assert "noise bands" not in explanation(lower=None, upper=None, notes=())._repr_html_()


def test_copies_and_pickles_keep_the_numbers() -> None:
    for made in (copy.deepcopy(explanation()), pickle.loads(pickle.dumps(explanation()))):
        assert np.array_equal(made.values, explanation().values)
        assert made.points == explanation().points


def test_reading_explanations_needs_neither_vault_nor_ledger_nor_matplotlib() -> None:
    program = (
        "import sys, vitrail; vitrail.Attribution; "
        "print([name for name in ('vitrail.vault', 'vitrail.ledger', 'matplotlib', 'shap') if name in sys.modules])"
    )
    seen = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert seen.strip() == "[]"

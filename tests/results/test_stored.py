"""Everything that is stored comes back equal, in equal bytes, and whatever a stranger changes is refused or harmless."""

import copy
import dataclasses
import json

import numpy as np
import pytest
from stored_examples import CURVE, EXAMPLES, LONG_CURVE, PRIVATE_ROWS, RANKING, SYNOPSIS, WIDE_SYNOPSIS

import vitrail as vt
from file_damage import HOSTILE_ARRAYS, STRANGE, npy, rehashed, unzipped, zipped
from vitrail.errors import DamagedFile, InvalidInput, VitrailError
from vitrail.results import private_rows
from vitrail.results.base import Result, Stored
from vitrail.results.codec import to_files
from vitrail.results.synopsis import Synopsis
from vitrail.solve.linear.weights import custom

FIELDS = "result/fields.json"
ALL = pytest.mark.parametrize("made", EXAMPLES.values(), ids=EXAMPLES)


def subclasses(kind):
    return {kind} | {one for child in kind.__subclasses__() for one in subclasses(child)}


def with_fields(made, fields):
    members = unzipped(made.to_bytes())
    return zipped(rehashed({**members, FIELDS: json.dumps(fields).encode()}))


def fields_of(made):
    return json.loads(unzipped(made.to_bytes())[FIELDS])


def used(made):
    """What a reader would do next; our own errors are answers."""
    assert repr(made)
    again = type(made).from_bytes(made.to_bytes())
    assert again == made
    if isinstance(made, Result):
        try:
            lengths = {len(column) for column in made.frame().values()}
        except VitrailError:
            return
        assert len(lengths) == 1
        assert all(isinstance(sentence, str) for sentence in made.sentences)


def refused_or_harmless(kind, files, fields):
    """Whether these fields were refused; nothing else but our own error may come of it."""
    try:
        made = kind.from_files({**files, "fields.json": json.dumps(fields).encode()}, "the file")
    except DamagedFile:
        return True
    with np.errstate(all="ignore"):
        used(made)
    return False


def test_every_stored_class_is_in_the_table():
    named = {one for one in subclasses(Stored) if "FORMAT" in vars(one)}
    assert {type(made) for made in EXAMPLES.values()} == named
    assert len({one.FORMAT for one in named}) == len(named) == 14


# --- what is written is read -----------------------------------------------------------------------------------------


@ALL
def test_files_and_json_bring_everything_back(made, tmp_path):
    content = made.to_bytes()
    path = made.save(tmp_path / "stored.vt")
    assert path.read_bytes() == content == made.to_bytes()
    for again in (type(made).load(path), type(made).from_json(json.loads(json.dumps(made.to_json(), allow_nan=False)))):
        assert again == made
        assert hash(again) == hash(made)
        assert again.to_bytes() == content
        assert again.to_json() == made.to_json()
        for one in dataclasses.fields(made):
            if one.compare and isinstance(array := getattr(made, one.name), np.ndarray):
                read = getattr(again, one.name)
                assert (read.dtype, read.shape, read.tobytes()) == (array.dtype, array.shape, array.tobytes())
    used(made)


@ALL
def test_another_price_is_another_result(made):
    if "cost" in {one.name for one in dataclasses.fields(made)}:
        dearer = dataclasses.replace(made, cost=made.cost + vt.Cost(1))
        assert dearer != made
        assert dearer.to_bytes() != made.to_bytes()
    assert made != CURVE.to_bytes()
    assert made != object()


@ALL
def test_results_have_the_same_things(made):
    if isinstance(made, Result):
        assert made.sentences[0] == made.guarantee.sentence
        assert isinstance(made.notes, tuple)
        assert callable(made.plot)
        frame = made.frame()
        assert all(isinstance(column, np.ndarray) and column.ndim == 1 for column in frame.values())


def test_large_arrays_are_files_and_small_ones_are_not():
    assert set(unzipped(LONG_CURVE.to_bytes())) == {"manifest.json", FIELDS, "result/x.npy", "result/y.npy"}
    assert set(unzipped(CURVE.to_bytes())) == {"manifest.json", FIELDS}
    np.testing.assert_array_equal(np.array(LONG_CURVE.to_json()["y"]), LONG_CURVE.y)


def test_what_is_not_content_is_not_written():
    model = vt.Model(lambda x: x[:, 0], range=(0, 1))
    assert dataclasses.replace(SYNOPSIS, model=model) == SYNOPSIS
    assert "model" not in SYNOPSIS.to_json()


def test_a_weight_of_somebodys_own_has_to_be_given_again(tmp_path):
    mine = SYNOPSIS.with_weight(custom(lambda d: np.exp(-d), name="mine"))
    path = mine.save(tmp_path / "mine.synopsis")
    with pytest.raises(InvalidInput, match="give it again with weight="):
        Synopsis.load(path)
    assert Synopsis.load(path, weight=mine.weight) == mine


# --- what others wrote -----------------------------------------------------------------------------------------------


@ALL
def test_no_field_may_be_missing_and_none_may_be_added(made):
    fields = fields_of(made)
    for name in fields:
        with pytest.raises(DamagedFile, match=f"lacks '{name}'"):
            type(made).from_bytes(with_fields(made, {key: value for key, value in fields.items() if key != name}))
    with pytest.raises(DamagedFile, match="'more', which this version does not know"):
        type(made).from_bytes(with_fields(made, {**fields, "more": 1}))


def spots(value, path=()):
    """Paths of values in a JSON tree; of long lists the first and the last."""
    yield path
    if isinstance(value, dict):
        for key in value:
            yield from spots(value[key], (*path, key))
    elif isinstance(value, list):
        for index in sorted({0, len(value) - 1}) if value else ():
            yield from spots(value[index], (*path, index))


def put(value, path, new):
    made = copy.deepcopy(value)
    spot = made
    for key in path[:-1]:
        spot = spot[key]
    spot[path[-1]] = copy.deepcopy(new)
    return made


@ALL
def test_every_field_is_damaged_one_at_a_time(made):
    files, fields = to_files(made), fields_of(made)
    paths = [path for path in spots(fields) if path]
    turns = max(1, min(len(STRANGE), 300 // len(paths)))
    refusals = [
        refused_or_harmless(type(made), files, put(fields, path, STRANGE[(3 * number + 5 * turn) % len(STRANGE)]))
        for number, path in enumerate(paths)
        for turn in range(turns)
    ]
    assert sum(refusals) > 0.6 * len(refusals)


@ALL
@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b'{"a": NaN}', b"\xff\xfe", b"[1]", b"", b"1" * 5000, b"[1e999]", b'{"a":1,"a":1}']
)
def test_texts_that_are_no_fields(made, text):
    members = unzipped(made.to_bytes())
    with pytest.raises(DamagedFile):
        type(made).from_bytes(zipped(rehashed({**members, FIELDS: text})))


@pytest.mark.parametrize("array", HOSTILE_ARRAYS)
def test_arrays_that_are_not_what_they_say(array):
    members = unzipped(WIDE_SYNOPSIS.to_bytes())
    name = next(name for name in members if name.endswith(".npy"))
    with pytest.raises(DamagedFile):
        Synopsis.from_bytes(zipped(rehashed({**members, name: array})))


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(number):
    members = unzipped(LONG_CURVE.to_bytes())
    body = np.full(300, number).tobytes()
    with pytest.raises(DamagedFile, match="no finite number"):
        vt.Curve.from_bytes(zipped(rehashed({**members, "result/y.npy": npy((300,), body=body)})))


def test_arrays_of_another_kind_another_name_or_too_many():
    members = unzipped(LONG_CURVE.to_bytes())
    whole = npy((300,), dtype="<i8", body=b"\0" * 2400)
    with pytest.raises(DamagedFile, match="dtype int64, and must have float64"):
        vt.Curve.from_bytes(zipped(rehashed({**members, "result/y.npy": whole})))
    fields = json.loads(members[FIELDS])
    with pytest.raises(DamagedFile, match=r"must name 'y\.npy'"):
        vt.Curve.from_bytes(with_fields(LONG_CURVE, {**fields, "y": "x.npy"}))
    with pytest.raises(DamagedFile, match=r"no field is stored in 'y\.npy'"):
        vt.Curve.from_bytes(with_fields(LONG_CURVE, {**fields, "y": [0.0] * 300}))


def test_another_result_and_another_version_are_named():
    with pytest.raises(DamagedFile, match="names the format 'vitrail-ranking/1'; what is read here names 'vitrail-curve'"):
        vt.Curve.from_bytes(RANKING.to_bytes())
    members = unzipped(CURVE.to_bytes())
    manifest = json.loads(members["manifest.json"])
    for changed, said in (
        ({"format": "vitrail-curve/2"}, "version 2 .* reads version 1, upgrade"),
        ({"format": 7}, "names the format '7'"),
        ({"files": {}}, "does not name"),
        ({"files": []}, "nothing else"),
        ({"more": 1}, "nothing else"),
        ({"files": {**manifest["files"], "result/y.npy": "0" * 64}}, "lacks the file"),
        ({"files": dict.fromkeys(manifest["files"], None)}, "is damaged"),
    ):
        with pytest.raises(DamagedFile, match=said):
            vt.Curve.from_bytes(zipped({**members, "manifest.json": json.dumps({**manifest, **changed}).encode()}))
    with pytest.raises(InvalidInput, match="no Curve"):
        vt.Curve.from_json([1])
    with pytest.raises(InvalidInput, match="names the format"):
        vt.Curve.from_json({})


@pytest.mark.parametrize("name", ["curve", "attribution", "private rows", "report"])
def test_cut_and_flipped_files(name):
    made = EXAMPLES[name]
    content, draw = made.to_bytes(), np.random.default_rng(0)
    for end in {0, 1, 21, 22, len(content) - 1, *range(100, len(content), 997)}:
        with pytest.raises(DamagedFile, match="no whole zip file"):
            type(made).from_bytes(content[:end])
    same = 0
    for place in draw.integers(0, len(content), 200):
        flipped = bytearray(content)
        flipped[place] ^= 1 << int(draw.integers(8))
        try:
            again = type(made).from_bytes(bytes(flipped))
        except DamagedFile:
            continue
        same += 1  # times and permissions in the zip's directory mean nothing to us
        assert again.to_bytes() == content
    assert same < 60


def test_files_that_are_not_there(tmp_path):
    for path in (tmp_path / "none.vt", tmp_path):
        with pytest.raises(InvalidInput, match="cannot be read"):
            vt.Curve.load(path)
    with pytest.raises(InvalidInput, match="cannot be written"):
        CURVE.save(tmp_path / "no folder" / "e.vt")


def test_long_json_texts_are_not_parsed():
    with pytest.raises(DamagedFile, match="JSON text of more than 64 MiB"):
        vt.Curve.from_bytes(b"{" + b" " * 2**26)


def test_a_pane_is_no_result_and_says_what_it_is():
    from vitrail.results.archive import pack

    with pytest.raises(DamagedFile, match="names the format 'vitrail-pane/3'"):
        vt.Curve.from_bytes(pack({"format": "vitrail-pane/3"}, {}))


# --- what the constructors accept and a stranger's file may not hold --------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path", "new", "said"),
    [
        ("private rows", ("groups", 0, 0), 10**15, "without gaps"),
        ("private rows", ("groups", 0, 0), -1, "without gaps"),
        ("private rows", ("links", 2, "parents"), [0, 1], "do not hang together|every column once"),
        ("private rows", ("links", 2, "child"), 0, "every column once"),
        ("private rows", ("noisy_tables", 0, 0), [0, 0], "those of the linked columns"),
        ("private rows", ("noisy_tables", 0, 0), [1, 2], "names a key twice"),
        ("private rows", ("counts_sigma",), 0.0, "no positive number"),
        ("private rows", ("coarse_sigma",), -6.0, "or none"),
        ("private rows", ("coarse_groups",), [], "or none"),
        ("private rows", ("coarse_groups", 0, 0), 10**15, "without gaps"),
        ("private rows", ("factors", 0, 0), [2, 1], "pairs of their columns"),
        ("private rows", ("factors", 0, 0), [0, 7], "pairs of their columns"),
        ("private rows", ("target",), "nobody", "'nobody' is not in the schema"),
        ("private rows", ("bins", 0, "name"), "sex", "exactly the columns"),
        ("private rows", ("bins", 2, "edges", 1), -1.0, "must not fall"),
        ("private rows", ("counts", 1), [-1e308, -1e308], ""),
        ("synopsis", ("scales", "F1"), 0.0, "no positive number"),
        ("synopsis", ("scales", "more"), 1.0, "no positive number"),
        ("synopsis", ("sigma",), -1.0, "no positive number"),
        ("synopsis", ("output_range",), [1.0, 0.0], "output range"),
        ("synopsis", ("cells",), ["sex"], "do not fit its schema"),
        ("synopsis", ("weight", "width"), -1.0, "must be a positive"),
        ("picture", ("code", "size"), 10**9, "features of its schema"),
        ("picture", ("by",), "nobody", "by"),
        ("picture", ("sums_sigma",), 0, "no positive number"),
        ("picture", ("labels",), ["no"], "shape"),
        ("network picture", ("code", "scale"), 0.0, "a positive scale"),
        ("linear picture", ("code", "base"), [0.0], "do not belong together"),
        ("counterfactuals", ("total_CFs",), 10**9, "from 1 to"),
        ("counterfactuals", ("total_CFs",), 1, ""),
        ("counterfactuals", ("answers", 0, 0, "row"), {"age": 1}, "with all columns"),
        ("marginals", ("counts",), {"age": [1.0]}, "exactly the columns"),
        ("marginals", ("sigma",), -1.0, "noise scale"),
        ("attribution", ("guarantee", "epsilon"), -1, "at least 0"),
        ("attribution", ("guarantee", "mu"), 1e-9, "says less than the releases"),
        ("attribution", ("guarantee", "sentence"), "all is well", "not written as Vitrail writes it"),
        ("attribution", ("guarantee", "neighbours"), "none", "neighbours"),
        ("attribution", ("cost", "pico_mu_squared"), -1, "at least 0"),
        ("attribution", ("cost", "pico_mu_squared"), 0.5, "whole number"),
        ("attribution", ("cost", "quecto_delta"), "-3", "whole number"),
        ("attribution", ("cost", "quecto_delta"), "9" * 200, "whole number"),
        ("attribution", ("band_claim",), "certain", "must be one of"),
        ("curve", ("std", 0), -1.0, "negative number"),
        ("curve", ("lower", 0), 1e9, "above its upper end"),
        ("curve", ("x",), [3.0, 2.0, 1.0], "must increase"),
        ("report", ("shares", "pdp"), "much", "'shares-0'"),
        ("report", ("pdp", "curves"), [], "must be an object"),
        ("history", ("entries", 0, "gradients"), 1.5, "whole number"),
    ],
)
def test_values_that_do_not_belong_together(name, path, new, said):
    made = EXAMPLES[name]
    if not said:
        refused_or_harmless(type(made), to_files(made), put(fields_of(made), path, new))
        return
    with pytest.raises(DamagedFile, match=said):
        type(made).from_bytes(with_fields(made, put(fields_of(made), path, new)))


def test_columns_that_all_hang_on_each_other_are_refused(monkeypatch):
    monkeypatch.setattr(private_rows, "MOST_CELLS", 10)
    with pytest.raises(DamagedFile, match="hang on each other"):
        vt.PrivateRows.from_bytes(PRIVATE_ROWS.to_bytes())

"""Files from strangers: cut, flipped, forged, swollen. Always our error, never anything else, never much memory."""

import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from pane_setup import PERSON

import vitrail as vt
from file_damage import HOSTILE_ARRAYS, STRANGE, rehashed, unzipped, zipped
from vitrail.errors import InvalidInput, VitrailError
from vitrail.results.archive import MOST_DIRECTORY_BYTES, MOST_JSON_BYTES


def refused(content, match=None):
    with pytest.raises(InvalidInput, match=match):
        vt.Pane.from_bytes(content)


def test_a_pane_that_was_cut_is_refused(made):
    size = len(made.content)
    for end in {0, 1, 21, 22, size // 3, size // 2, size - 23, size - 1, *range(100, size, 1499)}:
        refused(made.content[:end], "no whole zip file")
    refused(made.content + b"\0", "no whole zip file")


def test_a_flipped_bit_is_found_or_changes_nothing(made):
    draw = np.random.default_rng(0)
    same = 0
    for place in draw.integers(0, len(made.content), 400):
        flipped = bytearray(made.content)
        flipped[place] ^= 1 << int(draw.integers(8))
        try:
            pane = vt.Pane.from_bytes(bytes(flipped))
        except InvalidInput:
            continue
        same += 1  # times and permissions in the zip's directory mean nothing to us
        assert pane.to_bytes() == made.content
    assert same < 40


@pytest.mark.parametrize("array", HOSTILE_ARRAYS)
def test_arrays_that_are_not_what_they_say(made, array):
    members = unzipped(made.content)
    assert "rows/sampled.npy" in members
    refused(zipped(rehashed({**members, "rows/sampled.npy": array})), "'rows'")


@pytest.mark.parametrize(
    "name", ["../evil.json", "/etc/passwd", "a/../../b.json", "rows/rows.pkl", "rows\\x.json", "pane.py"]
)
def test_names_that_lead_elsewhere(made, name):
    refused(zipped({**unzipped(made.content), name: b"[]"}), "holds a file called")


def test_zip_bombs_are_refused_before_they_are_unpacked(made):
    members = unzipped(made.content)
    bomb = zipped({**members, "rows/bomb.npy": b"\0" * (300 * 2**20)})
    text = zipped({**members, "rows/bomb.json": b" " * (MOST_JSON_BYTES + 1)})
    size = 200 * 2**20
    modest = zipped({**members, "rows/bomb.npy": b"\0" * size}).replace(struct.pack("<I", size), struct.pack("<I", 99))
    assert len(bomb) < 2**20
    tracemalloc.start()
    try:
        refused(bomb, "unpack to more than")
        refused(modest)  # it claims 99 bytes, and is refused before it is unpacked further
        refused(text, "JSON text of more than")
        assert tracemalloc.get_traced_memory()[1] < 20 * 2**20
    finally:
        tracemalloc.stop()


def test_a_large_directory_is_refused_before_it_is_read(made):
    ending = made.content[-22:]
    swollen = ending[:12] + struct.pack("<I", MOST_DIRECTORY_BYTES + 1) + ending[16:]
    refused(made.content[:-22] + swollen, "bytes of names")
    locator = b"PK\x06\x07" + b"\0" * 16
    refused(made.content[:-22] + locator + ending, "zip64")


def test_other_packings_two_files_of_a_name_and_other_zips(made):
    members = unzipped(made.content)
    refused(zipped(members, zipfile.ZIP_LZMA), "unusual way")
    assert vt.Pane.from_bytes(zipped(members, zipfile.ZIP_STORED)).to_bytes() == made.content
    twice = {("rows/fieldz.json" if name == "rows/fields.json" else name): content for name, content in members.items()}
    twice["rows/fields.json"] = members["rows/fields.json"]
    refused(zipped(twice).replace(b"rows/fieldz.json", b"rows/fields.json"), "two files")
    refused(zipped({"hello/a.json": b"{}"}), "no manifest.json")
    refused(b"PK\x05\x06" + b"\0" * 18)


def test_damage_within_is_found_by_the_hashes(made):
    members = unzipped(made.content)
    report = members["global/fields.json"].replace(b"1", b"2", 1)
    refused(zipped({**members, "global/fields.json": report}), "is damaged")
    refused(zipped({name: content for name, content in members.items() if name != "rows/fields.json"}), "lacks the file")
    refused(zipped({**members, "rows/more.json": b"{}"}), "does not name")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "names the format"),
        ({"format": "vitrail-pane/4"}, "upgrade"),
        ({"format": "vitrail-pane/True"}, "version"),
        ({"schema": {}}, "'schema'"),
        ({"guarantee": None}, "'guarantee'"),
        ({"cost": {"pico_mu_squared": -1}}, "'guarantee'|'cost'"),
        ({"bill": [{}]}, "'bill-0'"),
        ({"bill": 3}, "'bill'"),
        ({"models": {}}, "'models'"),
        ({"models": None}, "'models'"),
        ({"created": "yesterday"}, "'created'"),
        ({"parts": {}}, "'parts'"),
        ({"parts": {"../up": {}}}, "'parts-0'"),
        ({"parts": {"../up": {"format": "x", "share": 1, "files": {"../up/a.json": "0" * 64}}}}, "'parts'"),
        ({"parts": {"rows": {"format": "x", "share": 1, "files": {"local/a.json": "0" * 64}}}}, "'parts'"),
        ({"dataset": 7}, "'dataset'"),
        ({"n_rows_public": 5999}, "another number of rows"),
        ({"target": "nobody"}, "'schema'"),
        ({"n_rows_public": -3}, "'n_rows_public'"),
    ],
)
def test_manifests_that_make_no_sense(made, change, said):
    members = unzipped(made.content)
    manifest = {**json.loads(members["manifest.json"]), **change}
    refused(zipped({**members, "manifest.json": json.dumps(manifest).encode()}), said)


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a": NaN}', b"\xff\xfe", b"[1]", b"", b"1" * 5000, b"[1e999]"])
def test_manifests_that_are_no_json(made, text):
    refused(zipped({**unzipped(made.content), "manifest.json": text}), r"manifest\.json")


def forged(content, draw):
    """A pane in which one value, somewhere, was exchanged for a strange one, with all its hashes right."""
    members = unzipped(content)
    name = str(draw.choice([one for one in members if one.endswith(".json")]))
    value = json.loads(members[name])
    spot, depth = value, int(draw.integers(1, 6))
    while True:
        keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
        if not keys:
            break
        key = keys[int(draw.integers(len(keys)))]
        depth -= 1
        if depth <= 0 or not isinstance(spot[key], dict | list):
            spot[key] = STRANGE[int(draw.integers(len(STRANGE)))]
            break
        spot = spot[key]
    members[name] = json.dumps(value).encode()
    try:
        return zipped(rehashed(members))
    except (AttributeError, KeyError, TypeError):  # the forger broke the manifest itself
        return zipped(members)


def test_forged_values_give_our_error_or_a_pane_that_works_as_far_as_it_goes(made):
    draw, refusals = np.random.default_rng(1), 0
    for _ in range(250):
        try:
            pane = vt.Pane.from_bytes(forged(made.content, draw))
            assert repr(pane)
            pane.local(PERSON, method="moments")
        except VitrailError:
            refusals += 1
    assert refusals > 50


def test_parts_about_other_columns_are_refused(made):
    members = unzipped(made.content)
    for name in ("rows", "reasons", "local", "counterfactual"):
        fields = json.loads(members[f"{name}/fields.json"])
        fields["schema"]["columns"] = fields["schema"]["columns"][:1]
        refused(zipped(rehashed({**members, f"{name}/fields.json": json.dumps(fields).encode()})), f"'{name}'")
    manifest = json.loads(members["manifest.json"])
    manifest["schema"]["columns"][0]["high"] = 91
    refused(zipped({**members, "manifest.json": json.dumps(manifest).encode()}), "other columns")
    manifest["schema"]["columns"] = manifest["schema"]["columns"][1:]
    for name in ("rows", "reasons", "local", "counterfactual"):
        for file in manifest["parts"].pop(name)["files"]:
            del members[file]
    refused(zipped({**members, "manifest.json": json.dumps(manifest).encode()}), "'age' is not in the schema")


def test_a_pane_of_version_1_is_refused_with_what_to_do(made):
    members = unzipped(made.content)
    first = {"pane.json": members.pop("manifest.json"), **members}
    refused(zipped(first), "pane of version 1.*vitrail release.*replays what was paid, free")


def test_a_synopsis_without_its_scales_and_a_model_without_its_hash_are_refused(made):
    members = unzipped(made.content)
    header = json.loads(members["local/fields.json"])
    for scales in ({}, {**header["scales"], "F1": 0.0}, {**header["scales"], "more": 1.0}):
        changed = json.dumps({**header, "scales": scales}).encode()
        refused(zipped(rehashed({**members, "local/fields.json": changed})), "'local'")
    manifest = json.loads(members["manifest.json"])
    manifest["models"][0]["embedded"] = "model/model.onnx"
    changed = {**members, "manifest.json": json.dumps(manifest).encode(), "model/model.onnx": b"x"}
    refused(zipped(changed), "'models'")
    manifest = json.loads(members["manifest.json"])
    manifest["models"] *= 2
    refused(zipped({**members, "manifest.json": json.dumps(manifest).encode()}), "two models of one name")


@pytest.mark.parametrize("threshold", [1.0, 0.0, -3, 7.5, "0.5", True, [0.5], 1e999, ...])
def test_a_threshold_that_no_output_crosses_is_refused(made, threshold):
    members = unzipped(made.content)
    manifest = json.loads(members["manifest.json"])
    assert manifest["models"][0]["threshold"] is None
    manifest["models"][0]["threshold"] = 0.25
    pane = vt.Pane.from_bytes(zipped({**members, "manifest.json": json.dumps(manifest).encode()}))
    assert pane.made_for.threshold == 0.25
    if threshold is ...:
        del manifest["models"][0]["threshold"]
    else:
        manifest["models"][0]["threshold"] = threshold
    said = "manifest.json" if threshold == 1e999 else "threshold"
    refused(zipped({**members, "manifest.json": json.dumps(manifest).encode()}), said)


def test_files_that_are_not_there_or_not_ours(tmp_path):
    with pytest.raises(InvalidInput, match="cannot be read"):
        vt.Pane.load(tmp_path / "none.pane")
    with pytest.raises(InvalidInput, match="cannot be read"):
        vt.Pane.load(tmp_path)
    (tmp_path / "text.pane").write_text("not a pane")
    with pytest.raises(InvalidInput, match="no whole zip"):
        vt.Pane.load(tmp_path / "text.pane")


@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf, -1e308])
def test_tables_that_no_row_can_be_drawn_from_are_found_at_once(made, number):
    members = unzipped(made.content)
    table = np.load(io.BytesIO(members["rows/sampled.npy"]))
    buffer = io.BytesIO()
    np.save(buffer, np.full_like(table, number))
    try:
        pane = vt.Pane.from_bytes(zipped(rehashed({**members, "rows/sampled.npy": buffer.getvalue()})))
    except InvalidInput:
        return
    assert len(pane.rows(3)) == 3

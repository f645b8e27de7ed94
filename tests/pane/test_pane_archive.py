"""Files from strangers: cut, flipped, forged, swollen. Always our error, never anything else, never much memory."""

import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest
from pane_setup import PERSON, rehashed, unzipped, zipped

import vitrail as vt
from vitrail.errors import InvalidInput, VitrailError
from vitrail.pane import parts
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


def npy(shape, dtype="<f8", fortran=False, body=b""):
    header = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def pickled():
    buffer = io.BytesIO()
    np.save(buffer, np.array([print], dtype=object), allow_pickle=True)
    return buffer.getvalue()


@pytest.mark.parametrize(
    "array",
    [
        npy((10**12,)),
        npy((2**62, 2**62)),
        npy((-1,)),
        npy((3,), body=b"\0" * 16),
        npy((1,), dtype="|O", body=b"\0" * 8),
        npy((2,), dtype="<f4", body=b"\0" * 8),
        npy((1, 1), fortran=True, body=b"\0" * 8),
        npy("(" * 200),
        npy("[1]"),
        pickled(),
        b"",
        b"\x93NUMPY\x02\x00",
        b"no array at all",
    ],
)
def test_arrays_that_are_not_what_they_say(made, array):
    members = unzipped(made.content)
    refused(zipped(rehashed({**members, "rows/counts_0.npy": array})), r"rows/counts_0\.npy")


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
    twice = {("rows/rowz.json" if name == "rows/rows.json" else name): content for name, content in members.items()}
    twice["rows/rows.json"] = members["rows/rows.json"]
    refused(zipped(twice).replace(b"rows/rowz.json", b"rows/rows.json"), "two files")
    refused(zipped({"hello/a.json": b"{}"}), "no pane.json")
    refused(b"PK\x05\x06" + b"\0" * 18)


def test_damage_within_is_found_by_the_hashes(made):
    members = unzipped(made.content)
    report = members["global/report.json"].replace(b"1", b"2", 1)
    refused(zipped({**members, "global/report.json": report}), "is damaged")
    refused(zipped({name: content for name, content in members.items() if name != "rows/rows.json"}), "lacks the file")
    refused(zipped({**members, "rows/more.json": b"{}"}), "does not name")


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"format": "other"}, "names the format"),
        ({"version": 2}, "upgrade"),
        ({"version": True}, "version"),
        ({"schema": {}}, "'schema'"),
        ({"guarantee": None}, "'guarantee'"),
        ({"cost": {"pico_mu_squared": -1}}, "'guarantee'|'cost'"),
        ({"bill": [{}]}, "'bill'"),
        ({"bill": 3}, "'bill'"),
        ({"model": []}, "'model'"),
        ({"created": "yesterday"}, "'created'"),
        ({"parts": {}}, "'parts'"),
        ({"parts": {"../up": {}}}, "'parts'"),
        ({"parts": {"rows": {"format": "x", "share": 1, "files": {"local/a.json": "0" * 64}}}}, "'parts'"),
        ({"dataset": 7}, "'dataset'"),
        ({"n_rows_public": 5999}, "another number of rows"),
        ({"target": "nobody"}, "'schema'"),
        ({"n_rows_public": -3}, "'n_rows_public'"),
    ],
)
def test_manifests_that_make_no_sense(made, change, said):
    members = unzipped(made.content)
    manifest = {**json.loads(members["pane.json"]), **change}
    refused(zipped({**members, "pane.json": json.dumps(manifest).encode()}), said)


@pytest.mark.parametrize("text", [b"[" * 100_000, b'{"a": NaN}', b"\xff\xfe", b"[1]", b"", b"1" * 5000, b"[1e999]"])
def test_manifests_that_are_no_json(made, text):
    refused(zipped({**unzipped(made.content), "pane.json": text}), r"pane\.json")


def forged(content, draw):
    """A pane in which one value, somewhere, was exchanged for a strange one, with all its hashes right."""
    members = unzipped(content)
    name = str(draw.choice([one for one in members if one.endswith(".json")]))
    value = json.loads(members[name])
    strange = [None, -1, 0, 10**9, 2**70, 0.5, "", "x", [], {}, True, [[]], {"a": 1}, -1e300]
    spot, depth = value, int(draw.integers(1, 6))
    while True:
        keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
        if not keys:
            break
        key = keys[int(draw.integers(len(keys)))]
        depth -= 1
        if depth <= 0 or not isinstance(spot[key], dict | list):
            spot[key] = strange[int(draw.integers(len(strange)))]
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


def test_columns_that_all_hang_on_each_other_are_refused(made, monkeypatch):
    monkeypatch.setattr(parts, "MOST_CELLS", 10)
    refused(made.content, "hang on each other")


def test_parts_about_other_columns_are_refused(made):
    members = unzipped(made.content)
    for name in ("rows/rows.json", "local/synopsis.json", "counterfactual/picture.json"):
        header = json.loads(members[name])
        header["schema"]["columns"] = header["schema"]["columns"][:1]
        refused(zipped(rehashed({**members, name: json.dumps(header).encode()})), "other columns")


def test_a_synopsis_without_its_scales_and_a_model_without_its_hash_are_refused(made):
    members = unzipped(made.content)
    header = json.loads(members["local/synopsis.json"])
    for scales in ({}, {**header["scales"], "F1": 0.0}, {**header["scales"], "more": 1.0}):
        changed = json.dumps({**header, "scales": scales}).encode()
        refused(zipped(rehashed({**members, "local/synopsis.json": changed})), "'local'")
    manifest = json.loads(members["pane.json"])
    manifest["model"]["embedded"] = "model/model.onnx"
    changed = {**members, "pane.json": json.dumps(manifest).encode(), "model/model.onnx": b"x"}
    refused(zipped(changed), "'model'")


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
    counts = np.load(io.BytesIO(members["rows/counts_0.npy"]))
    buffer = io.BytesIO()
    np.save(buffer, np.full_like(counts, number))
    try:
        pane = vt.Pane.from_bytes(zipped(rehashed({**members, "rows/counts_0.npy": buffer.getvalue()})))
    except InvalidInput:
        return
    assert len(pane.rows(3)) == 3

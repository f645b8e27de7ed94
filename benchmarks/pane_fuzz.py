"""Thousands of damaged and forged panes, opened in processes with little memory: always our error, or a pane that works.

    python benchmarks/pane_fuzz.py FILE.pane --count 1000 --seed 0      # one process; prints what happened as JSON

A *failure* is anything else: another exception (at opening, or when the pane is then asked for its repr, accuracy, rows, a
local explanation and its bytes), running out of memory under the limit, more than twenty seconds, a process that dies, or a
file that the payload of a pickle would have made.
"""

from __future__ import annotations

import argparse
import copy
import io
import json
import os
import pickle
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import traceback
import warnings
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import vitrail as vt
from vitrail.errors import InvalidInput, VitrailError
from vitrail.pane.pane_recipe import PARTS
from vitrail.results.archive import MANIFEST, digest

MEMORY_BYTES = 2 * 2**30
"""Of address space: libraries, the file, what it unpacks to, everything."""
SECONDS = 20
LARGE_SHARE = 10
"""One in so many is a damaged pane of Adult; the others are of a small one, which opens faster."""
CHUNK = 1000
Members = dict[str, bytes]
Damage = Callable[[bytes, np.random.Generator], bytes]


# --- a small pane ------------------------------------------------------------------------------------------------------


def small_pane() -> bytes:
    """All parts, five columns, rows that are nobody's; some arrays stand in JSON texts and some in files."""
    schema = vt.Schema(
        {
            "age": vt.Numeric(18, 90, integer=True),
            "gain": vt.Numeric(0, 1),
            "sex": vt.Categorical(["f", "m"]),
            "job": vt.Categorical([f"job {number}" for number in range(12)]),
            "town": vt.Categorical([f"town {number}" for number in range(12)]),
            "rich": vt.Categorical(["no", "yes"]),
        }
    )
    draw = np.random.default_rng(0)
    count = 4000
    rows = {"age": draw.integers(18, 91, count), "gain": draw.random(count), "sex": draw.choice(["f", "m"], count)}
    rows |= {name: draw.choice(schema[name].levels, count) for name in ("job", "town")}
    rows["rich"] = np.where(rows["age"] / 90 + 0.5 * rows["gain"] > 0.8, "yes", "no")
    data = vt.PrivateData(rows, schema, name="nobody", target="rich", n_rows_public=count, budget=vt.Budget(4, 1e-6))
    model = vt.Model(lambda x: 0.2 + 0.5 * x[:, 0] + 0.3 * x[:, 1], range=(0, 1), name="a line")
    return vt.release(data, model, epsilon=4.0, parts=PARTS).to_bytes()


# --- zips apart and together -------------------------------------------------------------------------------------------


def unzipped(content: bytes) -> Members:
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members: Members) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def rehashed(members: Members) -> Members:
    """With a manifest that states the right hashes: what a forger would write."""
    try:
        manifest = json.loads(members[MANIFEST])
        for part in manifest["parts"].values():
            part["files"] = {name: digest(members[name]) for name in part["files"] if name in members}
        return {**members, MANIFEST: json.dumps(manifest).encode()}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return members


def some(draw: np.random.Generator, names: list[str]) -> str:
    return names[int(draw.integers(len(names)))]


# --- damage ------------------------------------------------------------------------------------------------------------


def cut(content: bytes, draw: np.random.Generator) -> bytes:
    return content[: int(draw.integers(len(content)))]


def flipped(content: bytes, draw: np.random.Generator) -> bytes:
    made = bytearray(content)
    for place in draw.integers(0, len(made), int(draw.integers(1, 20))):
        made[place] ^= 1 << int(draw.integers(8))
    return bytes(made)


def flipped_directory(content: bytes, draw: np.random.Generator) -> bytes:
    """Sizes, offsets, flags and names in the zip's directory and its end."""
    start = struct.unpack("<I", content[-6:-2])[0]
    made = bytearray(content)
    for place in draw.integers(start, len(made), int(draw.integers(1, 6))):
        made[place] = int(draw.choice([0, 1, 0x7F, 0x80, 0xFF, int(draw.integers(256))]))
    return bytes(made)


def overwritten(content: bytes, draw: np.random.Generator) -> bytes:
    place, length = int(draw.integers(len(content))), int(draw.integers(1, 4000))
    return content[:place] + draw.bytes(length) + content[place + length :]


def spliced(content: bytes, draw: np.random.Generator) -> bytes:
    first, second = sorted(int(place) for place in draw.integers(0, len(content), 2))
    return content[:first] + content[second:] if draw.random() < 0.5 else content[:second] + content[first:]


def without_member(content: bytes, draw: np.random.Generator) -> bytes:
    members = unzipped(content)
    members.pop(some(draw, list(members)))
    return zipped(rehashed(members) if draw.random() < 0.5 else members)


def without_part(content: bytes, draw: np.random.Generator) -> bytes:
    """A part left out of the manifest, with or without its files."""
    members = unzipped(content)
    manifest = json.loads(members[MANIFEST])
    part = some(draw, list(manifest["parts"]))
    gone = manifest["parts"].pop(part)
    if draw.random() < 0.5:
        members = {name: bytes_ for name, bytes_ in members.items() if name not in gone["files"]}
    return zipped({**members, MANIFEST: json.dumps(manifest).encode()})


STRANGE = (
    None, -1, 0, 1, 10**9, 2**63, 2**70, 10**300, 0.5, -1e300, 1e-300, "", "x", "9" * 5000, "\ud800", [], {}, True, [[]],
    {"a": 1}, [None] * 50, "../../etc/passwd", "__class__", "1e309", [0.0] * 1000,
)  # fmt: skip


def forged_value(content: bytes, draw: np.random.Generator) -> bytes:
    """One to three values somewhere in the JSON exchanged for strange ones, hashes made right."""
    members = unzipped(content)
    name = some(draw, [one for one in members if one.endswith(".json")])
    value = json.loads(members[name])
    for _ in range(int(draw.integers(1, 4))):
        spot, depth = value, int(draw.integers(1, 7))
        while isinstance(spot, dict | list) and len(spot):
            keys = list(spot) if isinstance(spot, dict) else list(range(len(spot)))
            key = keys[int(draw.integers(len(keys)))]
            depth -= 1
            if depth <= 0 or not isinstance(spot[key], dict | list):
                if isinstance(spot, dict) and draw.random() < 0.2:
                    spot.pop(key)
                else:
                    spot[key] = copy.deepcopy(STRANGE[int(draw.integers(len(STRANGE)))])
                break
            spot = spot[key]
    return zipped(rehashed({**members, name: json.dumps(value).encode()}))


def hostile_text(content: bytes, draw: np.random.Generator) -> bytes:
    members = unzipped(content)
    name = some(draw, [one for one in members if one.endswith(".json")])
    texts = [
        b"[" * 200_000,
        b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        b"[" + b"1e400," * 10 + b"1]",
        b"1" * 100_000,
        b'{"a": NaN}',
        b"\xff\xfe\x00",
        b'{"a": 1, "a": 2}',
        b"[" + b"0," * 2_000_000 + b"0]",
        b'"' + b"x" * 5_000_000 + b'"',
        b"",
        b"null",
    ]
    members[name] = texts[int(draw.integers(len(texts)))]
    return zipped(members if name == MANIFEST else rehashed(members))


def npy(shape: object, dtype: str = "<f8", fortran: bool = False, body: bytes = b"") -> bytes:
    header = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


def hostile_array(content: bytes, draw: np.random.Generator) -> bytes:
    """Huge shapes, other kinds, code in headers; hashes made right."""
    members = unzipped(content)
    name = some(draw, [one for one in members if one.endswith(".npy")])
    arrays = [
        npy((10**12,)),
        npy((2**62, 2**62)),
        npy((2**31, 2**31, 2**31)),
        npy((-1,)),
        npy((0,)),
        npy((0, 10**11)),
        npy((3,), body=b"\0" * 16),
        npy((1,), dtype="|O", body=b"\0" * 8),
        npy((2,), dtype="<f4", body=b"\0" * 8),
        npy("(" * 500),
        npy("__import__('os').system('touch FUZZED')"),
        npy("(1).__class__"),
        pickled(),
        draw.bytes(200),
    ]
    return zipped(rehashed({**members, name: arrays[int(draw.integers(len(arrays)))]}))


class Payload:
    """Leaves a file behind where it is unpickled."""

    def __reduce__(self) -> tuple[Callable[[str], int], tuple[str]]:
        return os.system, ("touch FUZZED",)


def pickled() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.array([Payload()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


def pickled_member(content: bytes, draw: np.random.Generator) -> bytes:
    members = unzipped(content)
    name = some(draw, list(members))
    return zipped(rehashed({**members, name: pickle.dumps(Payload())}))


def strange_numbers(content: bytes, draw: np.random.Generator) -> bytes:
    """Arrays of the right shape with wrong numbers, or of another shape with the right bytes."""
    members = unzipped(content)
    name = some(draw, [one for one in members if one.endswith(".npy")])
    array = np.load(io.BytesIO(members[name]))
    if draw.random() < 0.3:
        array = [array.ravel(), array[..., None], array[:1], array.T, np.zeros((3, 3, 3))][int(draw.integers(5))]
    else:
        array = array.copy()
        wrong = [np.nan, np.inf, -np.inf, 1e308, -1e308, 5e-324, -1.0, 0.0]
        if array.dtype.kind in "iu":
            wrong = [np.iinfo(array.dtype).min, np.iinfo(array.dtype).max, 0, 1]
        some_places = draw.random(array.shape) < draw.choice([0.01, 0.3, 1.0])
        array[some_places] = wrong[int(draw.integers(len(wrong)))]
    buffer = io.BytesIO()
    np.save(buffer, np.ascontiguousarray(array))
    return zipped(rehashed({**members, name: buffer.getvalue()}))


def exchanged(content: bytes, draw: np.random.Generator) -> bytes:
    """Two members of a kind in each other's place."""
    members = unzipped(content)
    ending = ".npy" if draw.random() < 0.7 else ".json"
    names = [one for one in members if one.endswith(ending)]
    one, other = some(draw, names), some(draw, names)
    members[one], members[other] = members[other], members[one]
    return zipped(rehashed(members))


def renamed(content: bytes, draw: np.random.Generator) -> bytes:
    members = unzipped(content)
    names = [
        "../evil.json",
        "/etc/passwd",
        "rows/../../x.json",
        "rows\\x.json",
        "a" * 60_000,
        "manifest.json/",
        "x/y.py",
        "x/\0.json",
    ]
    name = some(draw, list(members))
    members[names[int(draw.integers(len(names)))]] = members.pop(name)
    return zipped(members)


def many_members(content: bytes, draw: np.random.Generator) -> bytes:
    members = unzipped(content)
    return zipped({**members, **{f"x/{number}.json": b"1" for number in range(int(draw.integers(1000, 6000)))}})


def bomb(content: bytes, draw: np.random.Generator) -> bytes:
    """Members that unpack to hundreds of megabytes; or a directory that claims other sizes than there are."""
    members = unzipped(content)
    name = some(draw, list(members))
    size = int(draw.choice([17, 100, 255, 300])) * 2**20
    filler = b" " if name.endswith(".json") else b"\0"
    members[name] = filler * size
    made = zipped(members)
    if draw.random() < 0.5:  # claims to be small
        made = made.replace(struct.pack("<I", size), struct.pack("<I", 100))
    return made


DAMAGES: dict[str, tuple[Damage, float]] = {
    "cut": (cut, 8),
    "bits flipped": (flipped, 16),
    "directory flipped": (flipped_directory, 16),
    "overwritten": (overwritten, 6),
    "spliced": (spliced, 6),
    "a file missing": (without_member, 4),
    "a part missing": (without_part, 3),
    "forged values": (forged_value, 22),
    "hostile JSON": (hostile_text, 2),
    "hostile arrays": (hostile_array, 6),
    "pickles": (pickled_member, 2),
    "strange numbers": (strange_numbers, 10),
    "files exchanged": (exchanged, 4),
    "names that lead elsewhere": (renamed, 2),
    "many files": (many_members, 0.2),
    "bombs": (bomb, 0.3),
}
"""With how often each happens."""


# --- one process -------------------------------------------------------------------------------------------------------


def used(pane: vt.Pane) -> None:
    """What a reader would do next, without a model; our own errors are answers."""
    point = {
        name: column.levels[0] if isinstance(column, vt.Categorical) else column.low for name, column in pane.schema.items()
    }
    for ask in (
        lambda: repr(pane),
        pane.accuracy,
        lambda: pane.rows(3),
        lambda: pane.local(point, method="moments"),
        pane.to_bytes,
    ):
        try:
            ask()
        except VitrailError:
            continue


def outcome(content: bytes) -> str:
    """``refused``, ``opened``, or what went wrong."""
    signal.alarm(SECONDS)
    try:
        try:
            pane = vt.Pane.from_bytes(content)
        except InvalidInput:
            return "refused"
        used(pane)
        return "opened"
    except BaseException as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        return f"{type(error).__name__}: {str(error)[:300]} ({Path(where.filename).name}, line {where.lineno})"
    finally:
        signal.alarm(0)


def _too_long(_signal: int, _frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS} seconds")


def fuzz(large: bytes, small: bytes, count: int, seed: int) -> dict[str, object]:
    """Damage, open, count."""
    draw = np.random.default_rng(seed)
    names = list(DAMAGES)
    odds = np.array([weight for _, weight in DAMAGES.values()])
    happened: Counter[str] = Counter()
    failures = []
    signal.signal(signal.SIGALRM, _too_long)
    for number in range(count):
        name = names[int(draw.choice(len(names), p=odds / odds.sum()))]
        content = DAMAGES[name][0](large if draw.integers(LARGE_SHARE) == 0 else small, draw)
        found = outcome(content)
        happened[f"{name}: {found if found in ('refused', 'opened') else 'failed'}"] += 1
        if found not in ("refused", "opened"):
            failures.append({"seed": seed, "number": number, "damage": name, "error": found})
        if Path("FUZZED").exists():
            failures.append({"seed": seed, "number": number, "damage": name, "error": "code in the pane was run"})
            Path("FUZZED").unlink()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"count": count, "happened": dict(happened), "failures": failures, "peak_mib": peak}


# --- all processes -----------------------------------------------------------------------------------------------------


def fuzzed(large: bytes, total: int) -> list[dict[str, object]]:
    """In processes of a thousand each, one after the other; a process that dies is a failure of its own."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "large.pane").write_bytes(large)
        (Path(folder) / "small.pane").write_bytes(small_pane())
        for seed in range(-(-total // CHUNK)):
            count = min(CHUNK, total - seed * CHUNK)
            command = [sys.executable, __file__, "large.pane", "small.pane", "--count", str(count), "--seed", str(seed)]
            environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
            done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
            if done.returncode == 0:
                found.append(json.loads(done.stdout))
            else:
                error = f"the process ended with {done.returncode}: {done.stderr[-300:]}"
                found.append({"count": 0, "happened": {}, "failures": [{"seed": seed, "error": error}], "peak_mib": 0.0})
            print(f"   {sum(int(one['count']) for one in found)} panes", found[-1]["failures"], flush=True)  # type: ignore[call-overload]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("large", type=Path)
    parser.add_argument("small", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=CHUNK)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    small = options.small.read_bytes() if options.small is not None else small_pane()
    large = options.large.read_bytes()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    warnings.simplefilter("ignore")
    with np.errstate(all="ignore"):
        print(json.dumps(fuzz(large, small, options.count, options.seed)))


if __name__ == "__main__":
    main()

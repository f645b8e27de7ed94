"""Files taken apart and put together again: what the tests of stored results and of panes share."""

import io
import json
import pickle
import struct
import zipfile

import numpy as np

from vitrail.results.archive import MANIFEST, digest

STRANGE = [None, -1, 0, 10**9, 2**70, 0.5, "", "x", [], {}, True, [[]], {"a": 1}, -1e300, "../up", [None] * 3, "9" * 200]


def unzipped(content):
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        return {name: archive.read(name) for name in archive.namelist()}


def zipped(members, compression=zipfile.ZIP_DEFLATED):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", compression) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return buffer.getvalue()


def rehashed(members):
    """The members with a manifest that states their hashes: what a forger would write."""
    manifest = json.loads(members[MANIFEST])
    for part in manifest["parts"].values() if "parts" in manifest else [manifest]:
        part["files"] = {name: digest(members[name]) for name in part["files"] if name in members}
    return {**members, MANIFEST: json.dumps(manifest).encode()}


def npy(shape, dtype="<f8", fortran=False, body=b""):
    header = f"{{'descr': '{dtype}', 'fortran_order': {fortran}, 'shape': {shape}, }}".encode()
    header += b" " * (63 - (len(header) + 10) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header + body


class Bomb:
    def __reduce__(self):
        return exec, ("raise SystemExit('executed')",)


def pickled():
    buffer = io.BytesIO()
    np.save(buffer, np.array([Bomb()], dtype=object), allow_pickle=True)
    return buffer.getvalue()


HOSTILE_ARRAYS = [
    npy((10**12,)),
    npy((2**62, 2**62)),
    npy((-1,)),
    npy((0,)),
    npy((3,), body=b"\0" * 16),
    npy((1,), dtype="|O", body=b"\0" * 8),
    npy((2,), dtype="<f4", body=b"\0" * 8),
    npy((2,), dtype=">f8", body=b"\0" * 16),
    npy((1, 1), fortran=True, body=b"\0" * 8),
    npy("(" * 200),
    npy("[1]"),
    npy("__import__('os').system('touch FUZZED')"),
    pickled(),
    npy((1,), dtype="|O", body=pickle.dumps(Bomb())),
    pickle.dumps(Bomb()),
    b"",
    b"\x93NUMPY\x02\x00",
    b"no array at all",
]

"""The file of a pane: a plain zip of JSON texts and .npy arrays, checked before a byte of it is believed.

What a stranger's file could try, and what stops it. *Running code*: nothing is unpickled (arrays of objects are refused by
their header), nothing is imported, a model inside is opened on request only. *Writing elsewhere*: nothing is written, and
names other than ``folder/file.json``, ``.npy`` or ``.onnx`` are refused. *Filling memory*: the file's size, the size of its
directory (read from the last 22 bytes, before the directory is), the number of files and what they unpack to are bounded
before anything is unpacked; no file is unpacked beyond its declared size; an array's header has to account
for exactly the bytes that follow it, so no shape can ask for more than is there; JSON texts have a smaller bound. *Being
damaged*: every file has a SHA-256 in the manifest (and a checksum in the zip). The hashes find damage, not forgery: who can
change a file can change its hash. Tests: tests/pane/test_pane_archive.py.

The same content gives the same bytes: names are sorted, times fixed, compression is always deflate at level 9.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import re
import struct
import zipfile
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import InvalidInput

MANIFEST = "pane.json"
MOST_BYTES = 256 * 2**20
"""Of the file, and of everything that it unpacks to."""
MOST_JSON_BYTES = 16 * 2**20
"""Of one JSON text: parsed, it takes some ten times as much memory."""
MOST_FILES = 4096
MOST_DIRECTORY_BYTES = 2**20
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,63}/[A-Za-z0-9_-]{1,96}\.(json|npy|onnx)", re.ASCII)
_FIXED_DATE = (1980, 1, 1, 0, 0, 0)
_END, _END_SIZE = b"PK\x05\x06", 22
_ZIP64_LOCATOR, _LOCATOR_SIZE = b"PK\x06\x07", 20
_ENCRYPTED = 0x1
_COMPRESSIONS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
_MAGIC = b"\x93NUMPY\x01\x00"
_HEADER = re.compile(
    rb"\{'descr': '<f8', 'fortran_order': False, 'shape': (\(\)|\(\d{1,12},\)|\(\d{1,12}(?:, \d{1,12}){1,7}\)), \} *\n"
)


class DamagedPane(InvalidInput):
    """A file that is no pane, or no longer a whole one."""


def pack(manifest: Mapping[str, Any], files: Mapping[str, bytes]) -> bytes:
    """The bytes of a pane: the manifest and its files.

    Examples
    --------
    >>> content = pack({"format": "demo"}, {"part/numbers.json": b"[1]"})
    >>> unpack(content)
    ({'format': 'demo'}, {'part/numbers.json': b'[1]'})
    >>> unpack(content[:-1])
    Traceback (most recent call last):
        ...
    vitrail.results.archive.DamagedPane: the pane is no whole zip file: it does not end as one; it may have been cut
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, allowZip64=False) as archive:
        archive.writestr(_entry(MANIFEST), json_bytes(manifest), compresslevel=9)
        for name in sorted(files):
            if not _NAME.fullmatch(name):
                raise InvalidInput(f"a file of a pane is called {name!r}; it must be folder/name.json, .npy or .onnx")
            archive.writestr(_entry(name), files[name], compresslevel=9)
    content = buffer.getvalue()
    if len(content) > MOST_BYTES or sum(map(len, files.values())) > MOST_BYTES:
        raise InvalidInput(f"this pane is larger than {MOST_BYTES >> 20} MiB, which no reader opens; leave the model out")
    return content


def unpack(content: bytes, what: str = "the pane") -> tuple[dict[str, Any], dict[str, bytes]]:
    """The manifest and the files in the bytes of a pane, or an error that says what is wrong with them."""
    _check_ending(content, what)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_members(members, what)
            found = {member.filename: _member(archive, member, what) for member in members}
    except (zipfile.BadZipFile, zlib.error, EOFError, struct.error, OSError) as error:
        raise DamagedPane(f"{what} is a damaged zip file: {error}") from error
    except (NotImplementedError, RuntimeError, ValueError, IndexError, OverflowError) as error:
        if isinstance(error, InvalidInput):
            raise
        raise DamagedPane(f"{what} is a zip file that cannot be read: {error}") from error
    if MANIFEST not in found:
        raise DamagedPane(f"{what} has no {MANIFEST}; it is a zip file, but no pane")
    manifest = parsed_json(found.pop(MANIFEST), f"{MANIFEST} of {what}")
    if not isinstance(manifest, dict):
        raise DamagedPane(f"{MANIFEST} of {what} is no object")
    for name, bytes_ in found.items():
        if name.endswith(".npy"):
            check_array(bytes_, f"{name} of {what}")
    return manifest, found


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, what: str) -> bytes:
    """A file of the zip, unpacked no further than its directory says: reading *all* would unpack all, and cut it then."""
    with archive.open(member) as file:
        content = file.read(member.file_size)
    if len(content) != member.file_size:
        raise DamagedPane(f"{member.filename!r} of {what} is shorter than the zip's directory says; it may have been cut")
    return content


def read_bytes(path: str | Path) -> bytes:
    """A file's content, if it is small enough to be a pane."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"the pane {str(path)!r} cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise DamagedPane(f"{str(path)!r} is larger than {MOST_BYTES >> 20} MiB; a pane never is")
    return content


def digest(content: bytes) -> str:
    """The SHA-256 of a file, as the manifest states it."""
    return hashlib.sha256(content).hexdigest()


def json_bytes(value: object) -> bytes:
    """JSON text that is the same for the same value. Objects keep their order: columns and curves have one."""
    return (json.dumps(value, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


def parsed_json(content: bytes, what: str) -> object:
    """A JSON value, or an error that names the text."""
    if len(content) > MOST_JSON_BYTES:
        raise DamagedPane(f"{what} is a JSON text of more than {MOST_JSON_BYTES >> 20} MiB; a pane has none")
    try:
        found: object = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant, parse_float=_finite)
    except (ValueError, RecursionError) as error:
        raise DamagedPane(f"{what} is no JSON text: {type(error).__name__}: {str(error)[:200]}") from error
    return found


def check_array(content: bytes, what: str) -> None:
    """Refuse what is no .npy of plain float64 numbers, or has other bytes than its shape accounts for.

    Headers are taken as ``numpy.save`` writes them, letter by letter: NumPy's own reader would evaluate others.
    """
    length = int.from_bytes(content[8:10], "little")
    header, body = content[10 : 10 + length], content[10 + length :]
    found = _HEADER.fullmatch(header)
    if content[:8] != _MAGIC or found is None:
        raise DamagedPane(f"{what} is no array of float64 numbers in C order, as numpy.save writes it")
    shape = [int(size) for size in re.findall(rb"\d+", found[1])]
    if math.prod(shape) * 8 != len(body):
        raise DamagedPane(f"{what} says that its shape is {tuple(shape)}, and has other bytes than that takes")


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(name, _FIXED_DATE)
    entry.compress_type = zipfile.ZIP_DEFLATED
    entry.create_system = 3  # whatever system writes it
    return entry


def _check_ending(content: bytes, what: str) -> None:
    """The end record stands at the very end and announces a small directory: only then is the directory read."""
    if len(content) > MOST_BYTES:
        raise DamagedPane(f"{what} is larger than {MOST_BYTES >> 20} MiB; a pane never is")
    end = content[-_END_SIZE:]
    if len(end) < _END_SIZE or end[:4] != _END or end[-2:] != b"\0\0":
        raise DamagedPane(f"{what} is no whole zip file: it does not end as one; it may have been cut")
    if content[-_END_SIZE - _LOCATOR_SIZE : -_END_SIZE][:4] == _ZIP64_LOCATOR:
        raise DamagedPane(f"{what} is a zip64 file; a pane never is")
    count, size = struct.unpack("<HI", end[10:16])
    if count > MOST_FILES or size > MOST_DIRECTORY_BYTES:
        raise DamagedPane(f"{what} claims to hold {count} files with {size} bytes of names; a pane never does")


def _check_members(members: list[zipfile.ZipInfo], what: str) -> None:
    if len(members) > MOST_FILES:
        raise DamagedPane(f"{what} holds {len(members)} files; a pane has at most {MOST_FILES}")
    if sum(member.file_size for member in members) > MOST_BYTES:
        raise DamagedPane(f"{what} would unpack to more than {MOST_BYTES >> 20} MiB; a pane never does")
    seen: set[str] = set()
    for member in members:
        # The directory may spell a name otherwise than zipfile shows it, which cuts it at a zero byte.
        name = member.orig_filename
        if name != MANIFEST and not _NAME.fullmatch(name):
            raise DamagedPane(f"{what} holds a file called {name[:80]!r}; a pane has folder/name.json, .npy or .onnx only")
        if name in seen:
            raise DamagedPane(f"{what} holds two files called {name!r}")
        seen.add(name)
        if member.flag_bits & _ENCRYPTED or member.compress_type not in _COMPRESSIONS:
            raise DamagedPane(f"{name!r} of {what} is encrypted or packed in an unusual way; a pane is stored or deflated")
        if (name == MANIFEST or name.endswith(".json")) and member.file_size > MOST_JSON_BYTES:
            raise DamagedPane(f"{name!r} of {what} is a JSON text of more than {MOST_JSON_BYTES >> 20} MiB; a pane has none")


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}, which is no number of JSON")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"it holds {text[:40]}, which is too large for a number")
    return number

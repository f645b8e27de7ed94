"""The file format: a plain zip of JSON texts and .npy arrays, checked before a byte of it is believed.

What a stranger's file could try, and what stops it. *Running code*: nothing is unpickled or imported, and the header of an
array is matched letter by letter; a model inside is opened on request only. *Writing elsewhere*: nothing is written, and
names other than ``folder/file.json``, ``.npy`` or ``.onnx`` are refused. *Filling memory*: the size of the file, of its
directory (read from the last 22 bytes, before the directory is), the number of members and what they unpack to are bounded
before anything is unpacked; no member is unpacked beyond its declared size; an array's header has to account for exactly the
bytes that follow it; JSON texts have a smaller bound. *Being damaged*: every member has a SHA-256 in the manifest. The
hashes find damage, not forgery: who can change a file can change its hash. Tests:
tests/pane/test_pane_archive.py, tests/results/test_stored.py.

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
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ..accounting import JsonValue
from ..errors import DamagedFile, InvalidInput

MANIFEST = "manifest.json"
FIRST_PANES = "pane.json"
"""What the manifest of a pane of version 1 was called."""
MOST_BYTES = 256 * 2**20
"""Of the file, and of everything that it unpacks to."""
MOST_JSON_BYTES = 64 * 2**20
"""Of one JSON text: parsed, it takes some ten times as much memory."""
LONG = 2**22
"""Members of more bytes are compressed less: rows of thousands of columns would take minutes."""
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
    rb"\{'descr': '(<f8|<i8|\|b1)', 'fortran_order': False, "
    rb"'shape': (\(\)|\(\d{1,12},\)|\(\d{1,12}(?:, \d{1,12}){1,7}\)), \} *\n"
)


def pack(manifest: Mapping[str, JsonValue], files: Mapping[str, bytes]) -> bytes:
    """The bytes of a file: its manifest and its members.

    Examples
    --------
    >>> content = pack({"format": "demo/1"}, {"part/numbers.json": b"[1]"})
    >>> unpack(content, "the file")
    ({'format': 'demo/1'}, {'part/numbers.json': b'[1]'})
    >>> unpack(content[:-1], "the file")
    Traceback (most recent call last):
        ...
    vitrail.errors.DamagedFile: the file is no whole zip file: it does not end as one; it may have been cut
    """
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, allowZip64=False) as archive:
        for name, content in [(MANIFEST, json_bytes(manifest)), *sorted(files.items())]:
            if name != MANIFEST and not _NAME.fullmatch(name):
                raise InvalidInput(f"a member is called {name!r}; it must be folder/name.json, .npy or .onnx")
            entry = zipfile.ZipInfo(name, _FIXED_DATE)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.create_system = 3  # whatever system writes it
            archive.writestr(entry, content, compresslevel=9 if len(content) <= LONG else 3)
    packed = buffer.getvalue()
    texts = max((len(content) for name, content in files.items() if name.endswith(".json")), default=0)
    whole = max(len(packed), sum(map(len, files.values())))
    if whole > MOST_BYTES or texts > MOST_JSON_BYTES or len(files) >= MOST_FILES:
        raise InvalidInput(
            f"this file would have {whole >> 20} MiB, {len(files)} members and texts of {texts >> 20} MiB; readers take at "
            f"most {MOST_BYTES >> 20} MiB, {MOST_FILES} members and {MOST_JSON_BYTES >> 20} MiB. Leave an embedded model "
            "out, or save fewer points at once"
        )
    return packed


def unpack(content: bytes, what: str) -> tuple[dict[str, JsonValue], dict[str, bytes]]:
    """The manifest and the members in the bytes of a file, or an error that says what is wrong with them."""
    _check_ending(content, what)
    try:
        with zipfile.ZipFile(io.BytesIO(content)) as archive:
            members = archive.infolist()
            _check_members(members, what)
            files = {member.filename: _unpacked(archive, member, what) for member in members}
    except Exception as error:  # the bytes may be anybody's: no content may raise anything else
        if isinstance(error, DamagedFile):
            raise
        raise DamagedFile(f"{what} is a damaged zip file: {error}") from error
    if MANIFEST not in files:
        raise DamagedFile(f"{what} has no {MANIFEST}; it is a zip file, but none of Vitrail's")
    manifest = parsed_json(files.pop(MANIFEST), f"{MANIFEST} of {what}")
    if not isinstance(manifest, dict):
        raise DamagedFile(f"{MANIFEST} of {what} is no object")
    return manifest, files


def check_format(manifest: Mapping[str, JsonValue], wanted: str, what: str) -> None:
    """Refuse a file of another kind or version, and say what it is."""
    named = manifest.get("format")
    if named == wanted:
        return
    kind, version = wanted.split("/")
    if isinstance(named, str) and named.startswith(f"{kind}/"):
        raise DamagedFile(
            f"{what} has version {named.removeprefix(f'{kind}/')[:20]} of its format; this version of Vitrail reads version "
            f"{version}, upgrade to read it"
        )
    raise DamagedFile(f"{what} names the format {str(named)[:60]!r}; what is read here names {kind!r}")


def check_files(listed: Mapping[str, JsonValue], files: Mapping[str, bytes], what: str) -> None:
    """Refuse members that are missing, changed or too many, by the hashes of the manifest."""
    for name, sha in listed.items():
        if name not in files:
            raise DamagedFile(f"{what} lacks the file {name!r}, which its manifest names; it may have been cut")
        if digest(files[name]) != sha:
            raise DamagedFile(f"the file {name!r} of {what} is not the one its manifest names: it is damaged")
    if spare := sorted(set(files) - set(listed)):
        raise DamagedFile(f"{what} holds the file {spare[0]!r}, which its manifest does not name")


def read_bytes(path: str | Path) -> bytes:
    """A file's content, if it is small enough to be one of Vitrail's."""
    try:
        with Path(path).open("rb") as file:
            content = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} cannot be read: {error.strerror}") from error
    return content


def write_bytes(path: str | Path, content: bytes) -> Path:
    """Write a file; returns where."""
    target = Path(path)
    try:
        target.write_bytes(content)
    except OSError as error:
        raise InvalidInput(f"{str(path)!r} cannot be written: {error.strerror}") from error
    return target


def digest(content: bytes) -> str:
    """The SHA-256 of a member, as the manifest states it."""
    return hashlib.sha256(content).hexdigest()


def json_bytes(value: JsonValue | Mapping[str, JsonValue]) -> bytes:
    """JSON text that is the same for the same value. Objects keep their order: columns and curves have one."""
    plain = dict(value) if isinstance(value, Mapping) else value
    return (json.dumps(plain, indent=1, ensure_ascii=True, allow_nan=False) + "\n").encode("ascii")


def parsed_json(content: bytes, what: str) -> JsonValue:
    """A JSON value, or an error that names the text."""
    if len(content) > MOST_JSON_BYTES:
        raise DamagedFile(
            f"{what} is a JSON text of more than {MOST_JSON_BYTES >> 20} MiB; what ``save`` writes may be larger"
        )
    try:
        parsed: JsonValue = json.loads(
            content.decode("utf-8"), parse_constant=_finite, parse_float=_finite, object_pairs_hook=_object
        )
    except (ValueError, RecursionError) as error:
        raise DamagedFile(f"{what} is no JSON text: {type(error).__name__}: {str(error)[:200]}") from error
    return parsed


def array_bytes(array: NDArray[np.generic]) -> bytes:
    """A .npy file of float64, int64 or bool, little-endian and in C order."""
    buffer = io.BytesIO()
    np.save(buffer, np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C"), allow_pickle=False)
    return buffer.getvalue()


def array_of(content: bytes, what: str) -> NDArray[np.generic]:
    """The finite numbers of a .npy file, read-only; its bytes must be exactly those that its shape takes.

    Headers are taken as ``numpy.save`` writes them, letter by letter: NumPy's own reader would evaluate others.
    """
    length = int.from_bytes(content[8:10], "little")
    header, body = content[10 : 10 + length], content[10 + length :]
    described = _HEADER.fullmatch(header)
    if content[:8] != _MAGIC or described is None:
        raise DamagedFile(f"{what} is no array of float64, int64 or bool in C order, as numpy.save writes it")
    dtype, shape = np.dtype(described[1].decode()), tuple(int(size) for size in re.findall(rb"\d+", described[2]))
    if math.prod(shape) * dtype.itemsize != len(body):
        raise DamagedFile(f"{what} says that its shape is {shape}, and has other bytes than that takes")
    array = np.frombuffer(body, dtype).reshape(shape)
    if not np.isfinite(array).all() or (dtype.kind == "b" and array.view(np.uint8).max(initial=0) > 1):
        raise DamagedFile(f"{what} holds a value that is no finite number")
    return array


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo, what: str) -> bytes:
    """A member, unpacked no further than the directory says: reading *all* would unpack all, and cut it then."""
    with archive.open(member) as file:
        content = file.read(member.file_size)
    if len(content) != member.file_size:
        raise DamagedFile(f"{member.filename!r} of {what} is shorter than the zip's directory says; it may have been cut")
    return content


def _check_ending(content: bytes, what: str) -> None:
    """The end record stands at the very end and announces a small directory: only then is the directory read."""
    if len(content) > MOST_BYTES:
        raise DamagedFile(f"{what} is larger than {MOST_BYTES >> 20} MiB; Vitrail writes no such file")
    end = content[-_END_SIZE:]
    if len(end) < _END_SIZE or end[:4] != _END or end[-2:] != b"\0\0":
        raise DamagedFile(f"{what} is no whole zip file: it does not end as one; it may have been cut")
    if content[-_END_SIZE - _LOCATOR_SIZE : -_END_SIZE][:4] == _ZIP64_LOCATOR:
        raise DamagedFile(f"{what} is a zip64 file; Vitrail writes none")
    count, size = struct.unpack("<HI", end[10:16])
    if count > MOST_FILES or size > MOST_DIRECTORY_BYTES:
        raise DamagedFile(f"{what} claims to hold {count} files with {size} bytes of names; Vitrail writes no such file")


def _check_members(members: list[zipfile.ZipInfo], what: str) -> None:
    # The directory may spell a name otherwise than zipfile shows it, which cuts it at a zero byte.
    names = [member.orig_filename for member in members]
    if FIRST_PANES in names:
        raise DamagedFile(
            f"{what} is a pane of version 1, which this version of Vitrail does not read; make a new one with vt.release or "
            "'vitrail release': with the same data, model and ledger it replays what was paid, free"
        )
    if len(members) > MOST_FILES:
        raise DamagedFile(f"{what} holds {len(members)} files; Vitrail writes at most {MOST_FILES}")
    if sum(member.file_size for member in members) > MOST_BYTES:
        raise DamagedFile(f"{what} would unpack to more than {MOST_BYTES >> 20} MiB; Vitrail writes no such file")
    seen: set[str] = set()
    for name, member in zip(names, members, strict=True):
        if name != MANIFEST and not _NAME.fullmatch(name):
            raise DamagedFile(f"{what} holds a file called {name[:80]!r}; there are folder/name.json, .npy and .onnx only")
        if name in seen:
            raise DamagedFile(f"{what} holds two files called {name!r}")
        seen.add(name)
        if member.flag_bits & _ENCRYPTED or member.compress_type not in _COMPRESSIONS:
            raise DamagedFile(f"{name!r} of {what} is encrypted or packed in an unusual way; it must be stored or deflated")
        if name.endswith(".json") and member.file_size > MOST_JSON_BYTES:
            raise DamagedFile(
                f"{name!r} of {what} is a JSON text of more than {MOST_JSON_BYTES >> 20} MiB; Vitrail writes none"
            )


def _object(pairs: list[tuple[str, JsonValue]]) -> dict[str, JsonValue]:
    made = dict(pairs)
    if len(made) < len(pairs):
        raise ValueError("an object names a field twice")
    return made


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"it holds {text[:40]}, which is no finite number")
    return number

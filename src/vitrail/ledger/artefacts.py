"""An analyst's own work, kept beside what was paid for it.

What is computed from releases alone is post-processing and costs nothing, so the ledger keeps it without a price: bytes
under a name, their digest in the chain. The ledger cannot see where bytes come from; whoever keeps something vouches that
it was made from releases and public numbers (``vault.PrivateData`` has nothing else to give).

Everything is per analyst: what one analyst was told counts against that analyst's cap, so no other may read it for free.
The latest content under a name holds; the chain remembers the digests of the ones before.
"""

from __future__ import annotations

import hashlib

from ..accounting import JsonValue
from .book import Book, KeptRow
from .chain import append, corrupted, entry_of, locked
from .checks import check_content, check_name


def keep(book: Book, account: str, analyst: str, name: str, content: bytes) -> None:
    """Keep ``content`` under ``name``, in place of what was there."""
    check_name(analyst, "an analyst")
    check_name(name, "something to keep")
    check_content(content)
    row = locked(book, account)
    digest = hashlib.sha256(content).hexdigest()
    body: dict[str, JsonValue] = {"analyst": analyst, "name": name, "sha256": digest, "size": len(content)}
    after = append(book, row, "kept", body)
    book.put_account(after, new=False)
    new = book.kept(account, analyst, name) is None
    book.put_kept(KeptRow(account, analyst, name, after.seq, content), new=new)


def kept(book: Book, account: str, analyst: str, name: str) -> bytes | None:
    """What the analyst keeps under ``name``, checked against its entry; None where there is nothing."""
    check_name(analyst, "an analyst")
    check_name(name, "something that is kept")
    locked(book, account)
    found = book.kept(account, analyst, name)
    if found is None:
        return None
    entry = entry_of(book, account, found.kept_seq)
    told = None if entry is None else (entry.kind, entry.analyst, entry.body.get("name"), entry.body.get("sha256"))
    if told != ("kept", analyst, name, hashlib.sha256(found.content).hexdigest()):
        raise corrupted(account, f"what analyst {analyst!r} keeps as {name!r} does not match its digest")
    return found.content

"""Where in the records the payload ids of clients' logs are: as keys, as values, in one header.

A client may call anything its record's id: the key, a field of the value, a hash of either. An id
names a record only where it is shown to: where records that were acknowledged at an offset carry
at this very offset, in one and the same place and encoding, the id that they were acknowledged
with, and carry the ids of others less often. Ids of which that cannot be shown name nothing.
"""

import json
import re
from base64 import b64encode, urlsafe_b64encode
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple
from uuid import UUID

from replication.evidence.clients.client_logs import Acknowledgement, Consumption
from replication.evidence.joining.copies import Copy
from replication.evidence.log_directories.record_payloads import (
    RecordIdentity,
    read_record_identities,
)
from replication.evidence.log_directories.segments import RecordBatch
from replication.evidence.tools.dumped_logs import DumpedDirectory
from replication.evidence.unreadable import Unreadable

# So many promised offsets of a partition are looked at, evenly spread, to find the form of ids.
SAMPLED = 1_000
_WORD = re.compile(r"[\w-]+")
_LONGEST_VALUE = 1 << 16
Promise = Acknowledgement | Consumption


class Form(NamedTuple):
    """A place in a record and how an id is written there.

    where: "key", "value" or "header:NAME". encoding: text, word (the first one of a longer text),
    json:FIELD, json, hex, base64, uuid, integer (big-endian).
    """

    where: str
    encoding: str


@dataclass(frozen=True, slots=True)
class Naming:
    """What is known of the payload ids of one partition's promises.

    forms: the forms that ids were found to have. unnamed: (path, client) of those whose ids are
    not shown to name records; declared: of those of whom the user says so, and some do. looked:
    whether there were records to look at.
    """

    forms: frozenset[Form] = frozenset()
    unnamed: frozenset[tuple[str, str]] = frozenset()
    declared: frozenset[tuple[str, str]] = frozenset()
    looked: bool = False

    def name(self, promise: Promise) -> str | None:
        """The id that names a promise's record, None where nothing shows that it does."""
        return None if (promise.path, promise.client) in self.unnamed else promise.payload_id

    def is_declared(self, promise: Promise) -> bool:
        """Whether the user says where this promise's id is, and the records do have such ids
        there."""
        return (promise.path, promise.client) in self.declared

    def names(self, record: RecordIdentity) -> Iterator[str]:
        """The ids by which a record may be called."""
        for form, text in texts_of(record):
            if form in self.forms:
                yield text


@dataclass(slots=True)
class _Client:
    """One client's ids: at which offsets each was promised (None: the client was not told)."""

    promised: dict[str, set[int | None]] = field(default_factory=dict)
    declared: str | None = None
    placed: dict[Form, set[str]] = field(default_factory=dict)
    misplaced: dict[Form, set[tuple[str, int]]] = field(default_factory=dict)


def naming_of(
    copies: Iterable[Copy], promises: Iterable[Promise], declared: str | None = None
) -> Naming:
    """In which form the ids of each client's promises are in the records of the copies.

    declared: the place that the user names ("key", "value", "header:NAME"); other places are not
    looked at then. Without records that can be read, nobody's ids name anything.
    """
    clients: dict[tuple[str, str], _Client] = {}
    for promise in promises:
        if promise.payload_id is not None and _is_kept(promise):
            client = clients.setdefault((promise.path, promise.client), _Client())
            client.promised.setdefault(promise.payload_id, set()).add(promise.offset)
            client.declared = promise.payload_id_in or client.declared or declared
    if not clients:
        return Naming()
    owners: dict[str, list[_Client]] = {}
    for client in clients.values():
        for payload_id in client.promised:
            owners.setdefault(payload_id, []).append(client)
    told = {o for c in clients.values() for ids in c.promised.values() for o in ids}
    wanted = _sampled(sorted(o for o in told if o is not None), None in told)
    looked = False
    for record in _records(copies, wanted):
        looked = True
        for form, text in texts_of(record):
            for client in owners.get(text, ()):
                _note(client, form, text, record.offset)
    return _judged(clients, looked)


def _is_kept(promise: Promise) -> bool:
    """Whether the client was told that the record is in the log."""
    return isinstance(promise, Consumption) or promise.status == "acked"


def _note(client: _Client, form: Form, text: str, offset: int) -> None:
    if client.declared not in (None, form.where):
        return
    promised = client.promised[text]
    if offset in promised or None in promised:
        client.placed.setdefault(form, set()).add(text)
    else:
        client.misplaced.setdefault(form, set()).add((text, offset))


def _judged(clients: dict[tuple[str, str], _Client], looked: bool) -> Naming:
    """Each client's best form, if its ids are shown to have one."""
    forms: dict[tuple[str, str], Form] = {}
    for name, client in clients.items():
        form = max(client.placed, key=lambda f: _rank(client, f), default=None)
        if form is not None and len(client.placed[form]) > len(client.misplaced.get(form, ())):
            forms[name] = form
    found = {form.where for form in forms.values()}
    declared = {name for name, client in clients.items() if client.declared in found}
    return Naming(
        frozenset(forms.values()),
        frozenset(clients.keys() - forms.keys() - declared),
        frozenset(declared),
        looked,
    )


def _rank(client: _Client, form: Form) -> tuple[int, int, bool, bool, str]:
    """The more ids in their places and the fewer elsewhere; then the plainer form."""
    placed, misplaced = len(client.placed[form]), len(client.misplaced.get(form, ()))
    return placed, -misplaced, form.where == "key", form.encoding == "text", str(form)


def _sampled(offsets: list[int], untold: bool) -> list[int] | None:
    """At which offsets to look, None for all: where clients were told no offset."""
    if untold and not offsets:
        return None
    step = max(1, len(offsets) // SAMPLED)
    return offsets[::step]


def _records(copies: Iterable[Copy], wanted: list[int] | None) -> Iterator[RecordIdentity]:
    """The records of the batches that hold one of the wanted offsets, of every copy."""
    looked_at: set[tuple[int, int, int]] = set()
    for copy in copies:
        if isinstance(copy.directory, DumpedDirectory):
            yield from copy.directory.record_keys()
            continue
        for path, batch in copy.directory.iter_batches_with_path():
            known = (batch.base_offset, batch.crc, batch.size)
            if batch.is_control or known in looked_at or not _holds_any(batch, wanted):
                continue
            records = read_record_identities(path, batch)
            if not isinstance(records, Unreadable):
                looked_at.add(known)
                yield from records


def _holds_any(batch: RecordBatch, wanted: list[int] | None) -> bool:
    if wanted is None:
        return True
    at = bisect_left(wanted, batch.base_offset)
    return at < len(wanted) and wanted[at] < batch.end_offset


def texts_of(record: RecordIdentity) -> Iterator[tuple[Form, str]]:
    """Every text that a record carries, with its form."""
    if record.key_bytes is not None:
        yield from _texts("key", record.key_bytes)
    elif record.key is not None:
        yield Form("key", "text"), record.key
    if record.value is not None:
        yield from _texts("value", record.value)
    for name, value in record.headers:
        if value is not None:
            yield from _texts(f"header:{name.decode('utf-8', 'replace')}", value)


def _texts(where: str, content: bytes) -> Iterator[tuple[Form, str]]:
    """What bytes may stand for."""
    if len(content) > _LONGEST_VALUE:
        return
    text = content.decode("utf-8", "replace")
    yield Form(where, "text"), text
    word = _WORD.match(text)
    if word and word[0] != text:
        yield Form(where, "word"), word[0]
    if text[:1] in ("{", '"'):
        yield from _json_texts(where, text)
    yield Form(where, "hex"), content.hex()
    yield Form(where, "base64"), b64encode(content).decode()
    yield Form(where, "base64"), urlsafe_b64encode(content).decode().rstrip("=")
    if len(content) == 16:
        yield Form(where, "uuid"), str(UUID(bytes=content))
    if len(content) in (4, 8):
        yield Form(where, "integer"), str(int.from_bytes(content, "big", signed=True))


def _json_texts(where: str, text: str) -> Iterator[tuple[Form, str]]:
    """A JSON text, or the texts and numbers that an object holds by name."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return
    if isinstance(found, str):
        yield Form(where, "json"), found
    if isinstance(found, dict):
        for name, value in found.items():
            if isinstance(value, str | int) and not isinstance(value, bool):
                yield Form(where, f"json:{name}"), str(value)

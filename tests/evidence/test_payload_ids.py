"""Where payload ids stand in records: found out where records show it, else they name nothing."""

import hashlib
from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import pytest

from replication.evidence.clients.client_logs import Acknowledgement
from replication.evidence.joining.copies import Copy
from replication.evidence.joining.payload_ids import Form, Naming, naming_of
from replication.evidence.log_directories.log_directory import read_log_directory
from tests.evidence.segment_bytes import Record, batch

COUNT = 12


def acked(payload_id: str, offset: int | None, client: str = "p") -> Acknowledgement:
    return Acknowledgement(
        None, client, "t", 0, offset, "all", "acked", payload_id, None, None, None, None, None,
        "acks.jsonl", 1,
    )  # fmt: skip


def copy_of(folder: Path, record: Callable[[int], Record]) -> Copy:
    path = folder / "t-0" / f"{0:020d}.log"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"".join(batch(n, record(n), leader_epoch=0) for n in range(COUNT)))
    parent = read_log_directory(folder)
    return Copy(1, parent.partitions[0], parent, clean=True)


def found(folder: Path, record: Callable[[int], Record], ids: Callable[[int], str]) -> Naming:
    return naming_of([copy_of(folder, record)], [acked(ids(n), n) for n in range(COUNT)])


def name(n: int) -> str:
    return f"order-{n:04d}"


def uuid(n: int) -> UUID:
    return UUID(bytes=hashlib.md5(bytes([n])).digest())


FORMS: dict[str, tuple[Callable[[int], Record], Callable[[int], str], Form]] = {
    "key": (lambda n: Record(key=name(n).encode()), name, Form("key", "text")),
    "value": (lambda n: Record(name(n).encode()), name, Form("value", "text")),
    "value's first word": (
        lambda n: Record(name(n).encode().ljust(40, b".")),
        name,
        Form("value", "word"),
    ),
    "field of a value": (
        lambda n: Record(b'{"sum": 3, "order": "%s"}' % name(n).encode()),
        name,
        Form("value", "json:order"),
    ),
    "header": (
        lambda n: Record(key=b"k", headers=[(b"trace", b"x"), (b"id", name(n).encode())]),
        name,
        Form("header:id", "text"),
    ),
    "hex": (lambda n: Record(key=uuid(n).bytes), lambda n: uuid(n).hex, Form("key", "hex")),
    "uuid": (lambda n: Record(key=uuid(n).bytes), lambda n: str(uuid(n)), Form("key", "uuid")),
    "integer": (
        lambda n: Record(key=(1000 + n).to_bytes(8, "big")),
        lambda n: str(1000 + n),
        Form("key", "integer"),
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_form_that_every_record_shows(form: str, tmp_path: Path) -> None:
    record, ids, expected = FORMS[form]
    naming = found(tmp_path, record, ids)
    assert (naming.forms, naming.unnamed, naming.looked) == ({expected}, frozenset(), True)


def test_ids_that_stand_nowhere_name_nothing(tmp_path: Path) -> None:
    naming = found(
        tmp_path,
        lambda n: Record(key=name(n).encode()),
        lambda n: hashlib.sha1(name(n).encode()).hexdigest(),
    )
    assert (naming.forms, naming.unnamed) == (frozenset(), {("acks.jsonl", "p")})
    assert naming.name(acked("x", 3)) is None


def test_ids_that_are_keys_of_other_records_name_nothing(tmp_path: Path) -> None:
    """Keys 0..4 again and again, records counted 0..11: the first five agree by chance."""
    naming = found(tmp_path, lambda n: Record(key=str(n % 5).encode()), str)
    assert naming.forms == frozenset()


def test_each_client_has_ids_of_its_own_form(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, lambda n: Record(name(n).encode(), key=b"%d" % (7000 + n)))
    promises = [acked(name(n), n, "a") for n in range(0, COUNT, 2)]
    promises += [acked(f"#{n}", n, "b") for n in range(1, COUNT, 2)]
    naming = naming_of([copy], promises)
    assert naming.forms == {Form("value", "text")}
    assert naming.unnamed == {("acks.jsonl", "b")}


def test_the_place_that_the_user_names(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, lambda n: Record(name(n).encode(), key=name(n).encode()))
    promises = [acked(name(n), n) for n in range(COUNT)]
    assert naming_of([copy], promises).forms == {Form("key", "text")}
    told = naming_of([copy], promises, "value")
    assert (told.forms, told.is_declared(promises[0])) == ({Form("value", "text")}, True)
    elsewhere = naming_of([copy], promises, "header:id")
    assert (elsewhere.forms, elsewhere.is_declared(promises[0])) == (frozenset(), False)


def test_ids_of_promises_without_offsets(tmp_path: Path) -> None:
    copy = copy_of(tmp_path, lambda n: Record(key=name(n).encode()))
    assert naming_of([copy], [acked(name(3), None)]).forms == {Form("key", "text")}

"""Every field of every shipper's envelope by every JSON type and extreme, among good lines.

Whatever one envelope says, it is a line or it is refused with a reason, and what it says changes
nothing of the answer to the others.
"""

import copy
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.envelopes import (
    CLUSTER_FIELDS,
    HOST_FIELDS,
    LINE_FIELDS,
    OFFSET_FIELDS,
    PATH_FIELDS,
    WITHIN,
    FieldNames,
    NotALine,
    ShippedLine,
    shipped_lines,
)
from replication.evidence.shipping.live_join import LiveJoin
from replication.protocol.ground import wire
from tests.evidence.shipping.test_envelopes import ENVELOPES
from tests.evidence.shipping.test_hostile_digests import DEEP, INT64, VALUES
from tests.evidence.shipping.test_live_join import answers, newest
from tests.evidence.shipping.test_spool import sent_of

INCIDENT = "unclean_election__2.8.2"
FIELDS = LINE_FIELDS + HOST_FIELDS + PATH_FIELDS + OFFSET_FIELDS + CLUSTER_FIELDS + WITHIN
MORE = ({"name": "x"}, {"name": {"name": 7}}, {"name": DEEP}, {"path": "/a/b"}, [{"message": "x"}],
        "٧", "1" * 19, "1" * 20, "1" * 5_000, " 5", "5.0", "-5")  # fmt: skip
# Python's own limit of calls within calls, from far below to beyond it.
DEPTHS = (1, 7, 8, 9, 100, 500, *range(900, 1_010), 50_000)


def written(value: Any) -> bytes:
    return json.dumps(value).encode()


def places(value: Any, above: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Where a value of an envelope stands: the names that lead to it."""
    if above:
        yield above
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from places(inner, (*above, name))


def changed(envelope: dict[str, Any], place: tuple[str, ...], value: Any) -> dict[str, Any]:
    """The envelope with another value at a place."""
    found = copy.deepcopy(envelope)
    inner = found
    for name in place[:-1]:
        inner = inner[name]
    inner[place[-1]] = value
    return found


def hostile() -> Iterator[bytes]:
    """Each shipper's envelope with one field changed, or with a field of another shipper's."""
    for envelope, _ in ENVELOPES.values():
        for place in places(envelope):
            for value in (*VALUES, *MORE):
                yield written(changed(envelope, place, value))
        for name in FIELDS:
            for value in (*VALUES, *MORE):
                yield written({**envelope, name: value})
                if "." in name:
                    outer, _, inner = name.partition(".")
                    yield written({**envelope, outer: {inner: value}})


def nested() -> Iterator[bytes]:
    """Values within values, as deep as Python reads them and deeper."""
    for depth in DEPTHS:
        for name in ("name", *WITHIN):
            text = f'{{"{name}":' * depth + '{"message":"x"}' + "}" * depth
            yield text.encode()
            yield f'{{"message":{text}}}'.encode()
        for around in ('{"message":"x","offset":%s}', '{"message":"x","host":%s}', "%s",
                       '{"replication_digest":1,"n":%s}',
                       '{"message":"{\\"replication_digest\\":1,\\"n\\":%s}"}'):  # fmt: skip
            yield (around % ("[" * depth + "]" * depth)).encode()


def is_sound(line: ShippedLine | NotALine) -> bool:
    """Whether everything of it can be written down, and its place is one in a file."""
    if isinstance(line, NotALine):
        return bool(line.reason) and line.reason.isprintable()
    words = (line.text, line.host, line.path, line.cluster)
    return (
        all(isinstance(word, str) and "\0" not in word and word.encode() for word in words if word)
        and (line.offset is None or 0 <= line.offset <= wire.MAX_OFFSET)
        and line.client in ("", "acknowledgements", "consumption")
    )


def test_no_value_of_an_envelope_ends_the_reader() -> None:
    found = [list(shipped_lines(sent)) for sent in hostile()]
    assert all(is_sound(line) for lines in found for line in lines)
    assert sum(isinstance(line, ShippedLine) for lines in found for line in lines) > 10_000
    assert sum(isinstance(line, NotALine) for lines in found for line in lines) > 500


@pytest.mark.parametrize("names", [FieldNames(), FieldNames(("name.name",), ("offset",))])
def test_no_depth_of_an_envelope_ends_the_reader(names: FieldNames) -> None:
    found = [list(shipped_lines(sent, names)) for sent in nested()]
    assert all(is_sound(line) for lines in found for line in lines)
    assert sum(isinstance(line, NotALine) for lines in found for line in lines) > 500


def test_one_object_within_another_is_opened() -> None:
    inner: dict[str, Any] = {"message": "a line", "host": "k"}
    for depth in range(12):
        [found] = shipped_lines(written({**inner, "cluster": "c"} if depth == 0 else inner))
        assert isinstance(found, ShippedLine if depth <= 8 else NotALine), depth
        inner = {"_source": inner, "cluster": "c"}


def test_the_live_source_goes_on_whatever_one_envelope_says(tmp_path: Path) -> None:
    """Then the answer to the good lines is that to the good lines alone."""
    good = [line for each in sent_of(INCIDENT) for line in shipped_lines(each)]
    good = [replace(each, cluster="good") for each in good if isinstance(each, ShippedLine)]
    bad = [line for n, sent in enumerate(hostile()) if n % 7 == 0 for line in shipped_lines(sent)]
    bad += [line for sent in nested() for line in shipped_lines(sent)]
    live = LiveJoin(tmp_path / "live", tmp_path / "events")
    middle = len(good) // 2
    for number, part in enumerate((good[:middle], good[middle:])):
        lines = [*bad, *part, *bad]
        taken = live.step(number, lines).taken
        assert taken.rows == taken.kept + taken.repeated + len(taken.refused) == len(lines)
    alone = LiveJoin(tmp_path / "alone", tmp_path / "events-alone")
    alone.step(0, good)
    expected = answers(newest(tmp_path / "events-alone"))
    assert any(verdict == "VIOLATED" for _, rows, *_ in expected for _, verdict, _ in rows)
    found = [each for each in answers(newest(tmp_path / "events")) if each[0][0] == "good"]
    assert found == expected


def test_a_line_stands_no_further_in_a_file_than_a_file_goes() -> None:
    for offset in (0, 10**18 - 1, INT64, INT64 + 1, 10**19 - 1):
        lines = list(shipped_lines(written({"message": "a line\n" * 9, "offset": offset})))
        assert all(is_sound(line) for line in lines)
        assert isinstance(lines[0], ShippedLine)
        assert lines[0].offset == (offset if offset < 10**18 else None)

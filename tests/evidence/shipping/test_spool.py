"""Shipped so far, and imported: the same answer as a folder that holds the same logs.

Real captures are cut into micro-batches, shuffled within a bound, sent twice, in the envelopes of
several shippers; after any number of micro-batches the spool and a folder of what was sent agree.
"""

import json
import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from replication import cli
from replication.evidence.broker_logs.broker_log import LogLineFact, read_broker_log
from replication.evidence.collecting.envelopes import NotALine, ShippedLine, shipped_lines
from replication.evidence.joining.repeated_lines import each_once
from replication.evidence.shipping.compaction import TOGETHER
from replication.evidence.shipping.spool import Spool, _Log, safe_name
from replication.evidence.text_lines import LONGEST_LINE

INCIDENTS = Path(__file__).parents[2] / "incidents"
SHIPPED = ("unclean_election__2.8.2", "acks1_loss__3.9.1", "last_replica_standing__4.1.1__elr_off")


def logs_of(incident: str) -> list[Path]:
    """The broker logs of a capture."""
    names = ("server.log", "state-change.log", "controller.log")
    return sorted(p for p in (INCIDENTS / incident).rglob("*.log") if p.name in names)


def envelope(kind: int, host: str, log: Path, offset: int, line: str) -> bytes:
    if kind == 0:
        fields: dict[str, Any] = {"host": host, "file": str(log), "offset": offset, "message": line}
    else:
        fields = {"host": {"name": host}, "message": line,
                  "log": {"offset": offset, "file": {"path": f"/logs/{log.name}"}}}  # fmt: skip
    return json.dumps(fields).encode()


def sent_of(incident: str) -> list[bytes]:
    """Every line of every broker, in the order of its stamp, as shippers send it."""
    found: list[tuple[str, bytes]] = []
    for log in logs_of(incident):
        offset, stamp = 0, ""
        host = log.parent.name
        for line in log.read_text(encoding="utf-8").split("\n"):
            stamp = line[1:24] if line.startswith("[2") else stamp
            if line:
                found.append((stamp, envelope(len(host) % 2, host, log, offset, line)))
            offset += len(line.encode()) + 1
    return [sent for _, sent in sorted(found, key=lambda each: each[0])]


def answer_of(folder: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    """What diagnose says, without where it was read."""
    cli.main(["diagnose", "--format", "json", str(folder)])
    answer = json.loads(capsys.readouterr().out)
    return [
        {k: v for k, v in row.items() if k != "finding_ids"}
        for row in (*answer["verdicts"], *answer["partitions"], *answer["losses"])
    ]


def folder_of(sent: list[bytes], folder: Path) -> Path:
    """The same lines as a person would have copied them: each log whole, in its order."""
    logs: dict[tuple[str, str], list[ShippedLine]] = {}
    for each in dict.fromkeys(sent):
        for line in shipped_lines(each):
            assert isinstance(line, ShippedLine)
            logs.setdefault((line.host, Path(line.path).name), []).append(line)
    for (host, name), lines in logs.items():
        (folder / host).mkdir(parents=True, exist_ok=True)
        lines.sort(key=lambda line: line.offset or 0)
        (folder / host / name).write_text("\n".join(line.text for line in lines) + "\n")
    return folder


@pytest.mark.parametrize("incident", SHIPPED)
def test_what_was_shipped_so_far_is_what_a_folder_of_it_says(
    incident: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    chance = random.Random(7)
    sent = sent_of(incident)
    order = sorted(range(len(sent)), key=lambda n: n + chance.uniform(0, 60))
    spool, batches = Spool(tmp_path / "spool"), 6
    told = 0
    for number in range(batches):
        part = order[number * len(order) // batches : (number + 1) * len(order) // batches]
        again = chance.sample(part, len(part) // 5) + chance.sample(order[: told + 1], min(told, 9))
        told += len(part)
        every = [line for n in (*part, *again) for line in shipped_lines(sent[n])]
        taken = spool.take(number, every)
        assert taken.rows == taken.kept + taken.repeated + len(taken.refused)
        if number in (2, batches - 1):
            spool.take(number, every)  # a micro-batch that is done again
            so_far = [sent[n] for n in sorted(order[:told])]
            copied = folder_of(so_far, tmp_path / f"copied-{number}")
            [cluster] = spool.clusters()
            assert answer_of(cluster, capsys) == answer_of(copied, capsys)


def test_a_line_that_was_cut_waits_for_its_rest_in_later_micro_batches(tmp_path: Path) -> None:
    """A container's runtime cuts long lines; half of one tells other numbers than the whole."""
    text = "[2026-03-04 05:06:07,089] INFO Removed fetcher for partitions Set(t-0, t-12) (k)"
    whole, other = ShippedLine(text, "k", "c.log"), ShippedLine("[2026-01-01] x", "k", "d.log")
    first = replace(whole, text=text[:64], partial=True)
    second = replace(whole, text=text[64:70], partial=True)
    spool = Spool(tmp_path / "spool")
    for number, lines in enumerate(([other, first], [second], [other], [other, first])):
        for _ in range(2):
            taken = spool.take(number, lines)
            assert taken.rows == taken.kept + taken.repeated + len(taken.refused)
    assert not list(tmp_path.rglob("c.log*"))
    # Of a checkpoint that was lost: what came after it comes again.
    for _ in range(2):
        spool.take(3, [replace(whole, text=text[70:])])
    [log] = tmp_path.rglob("c.log*")
    assert log.read_text() == text + "\n"
    spool.take(4, [whole])
    assert {p.read_text() for p in tmp_path.rglob("c.log*")} == {text + "\n"}
    assert len(list(tmp_path.rglob("*.json"))) <= 2


def test_names_lead_nowhere_else(tmp_path: Path) -> None:
    line = ShippedLine(
        "[2026-01-01 00:00:00,000] INFO x (kafka.Kafka)", "../../etc", "/a/../..", "/"
    )
    Spool(tmp_path / "spool").take(0, [line, NotALine("no")])
    found = [p.relative_to(tmp_path) for p in tmp_path.rglob("*.log")]
    assert [str(p) for p in found] == ["spool/cluster/_.._etc/a.0000000000.log"]
    assert safe_name("..") == safe_name("") == ""
    assert safe_name("a/b\\c") == "a_b_c"


DUMP = [
    "[2026-03-04 05:06:07,089] INFO KafkaConfig values: ",
    "\tbroker.id = 1",
    "\tlog.cleanup.policy = [compact]",
    "\tmin.insync.replicas = 2",
    " (kafka.server.KafkaConfig)",
    "[2026-03-04 05:06:07,100] INFO [KafkaServer id=1] started (kafka.server.KafkaServer)",
]


def settings_in(folder: Path) -> list[dict[str, str]]:
    """Each dump of settings as joining takes it."""
    read = (fact for log in sorted(folder.rglob("*.log")) for fact in read_broker_log(log))
    told = sorted((f for f in read if isinstance(f, LogLineFact)), key=lambda fact: fact.at or 0)
    return [fact.fields["values"] for fact in each_once(told) if fact.kind == "settings"]


@pytest.mark.parametrize("with_offsets", [True, False])
@pytest.mark.parametrize("cut", [(1,), (2,), (3,), (4,), (5,), (2, 3), (1, 2, 3, 4)])
def test_a_dump_of_settings_that_micro_batches_divide_is_read_whole(
    cut: tuple[int, ...], with_offsets: bool, tmp_path: Path
) -> None:
    lines = [
        ShippedLine(text, "k", "s.log", offset=100 * n if with_offsets else None)
        for n, text in enumerate(DUMP)
    ]
    spool = Spool(tmp_path / "spool")
    number = 0
    for begin, end in pairwise((0, *cut, len(DUMP))):
        for _ in range(2):
            spool.take(number, lines[begin:end])
        number += 1
    [values] = settings_in(tmp_path)
    assert (values["min.insync.replicas"], values["log.cleanup.policy"]) == ("2", "[compact]")
    other = ShippedLine("[2026-03-04 05:06:09,000] INFO x (kafka.server.KafkaServer)", "k", "s.log")
    for later in range(number, 2 * TOGETHER):
        spool.take(later, [replace(other, text=other.text.replace("x", str(later)))])
    spool.compact(2 * TOGETHER, {})
    assert len(list(tmp_path.rglob("s.log*"))) < TOGETHER
    assert settings_in(tmp_path) == [values]


def test_what_goes_on_behind_another_line_belongs_to_no_dump(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    lines = [ShippedLine(text, "k", "s.log") for text in (*DUMP, "\tmin.insync.replicas = 7")]
    spool.take(0, lines[:2])
    spool.take(1, lines[5:6])
    spool.take(2, lines[6:])
    assert settings_in(tmp_path) == [{"broker.id": "1"}]


@pytest.mark.parametrize("seed", range(30))
def test_a_dump_whose_lines_come_in_any_order_is_read_whole(seed: int, tmp_path: Path) -> None:
    """Of a topic with several partitions no order of a log's lines is left but their bytes, of
    which shippers tell the first of a line, or the one behind it."""
    chance = random.Random(seed)
    texts = [*DUMP[:2], *(f"\tnot.kept.{n} = {n}" for n in range(30)), *DUMP[2:]]
    texts += [DUMP[-1].replace("100]", f"{n}]") for n in range(101, 140)]
    lines, offset = [], 0
    for text in texts:
        end = offset + len(text.encode()) + 1
        lines.append(ShippedLine(text, "k", "s.log", offset=end if seed % 2 else offset))
        offset = end
    order = sorted(range(len(lines)), key=lambda n: n + chance.uniform(0, 20))
    spool = Spool(tmp_path / "spool")
    for number in range(8):
        part = order[number * len(order) // 8 : (number + 1) * len(order) // 8]
        again = chance.sample(order[: part[0] + 1], min(part[0], 5))
        spool.take(number, [lines[n] for n in (*part, *again)])
    whole = {"broker.id": "1", "log.cleanup.policy": "[compact]", "min.insync.replicas": "2"}
    assert settings_in(tmp_path) == [whole]


def test_lines_that_say_the_same_at_one_byte_are_all_kept(tmp_path: Path) -> None:
    """A shipper that tells the byte of what it read at once tells the same of each line in it."""
    second = DUMP[0].replace("07,089", "08,089")
    texts = [*DUMP[:5], second, *DUMP[1:5]]
    Spool(tmp_path / "spool").take(0, [ShippedLine(t, "k", "s.log", offset=7) for t in texts])
    [log] = tmp_path.rglob("s.log*")
    assert log.read_text().splitlines() == texts


def test_a_line_in_many_pieces_is_put_together_once(tmp_path: Path) -> None:
    """Of what has come each piece is held by itself, and no more of it than a reader reads."""
    text = "[2026-03-04 05:06:07,089] INFO " + "x" * 5_000
    one = ShippedLine(text, "k", "c.log")
    pieces = [replace(one, text=letter, partial=True) for letter in text]
    log = _Log()
    for number, piece in enumerate(pieces, 1):
        log.add(piece)
        assert len(log.pieces) == number
    log.add(replace(one, text="y"))
    assert (log.written(0), log.pieces) == ([text + "y"], [])
    for _ in range(LONGEST_LINE // 1000 + 100):
        log.add(replace(one, text="x" * 1000, partial=True))
    assert len(log.open_part) <= LONGEST_LINE + 1000

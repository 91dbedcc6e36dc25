"""Dumps of kafka-dump-log in place of log directories: what they show, and never more.

The verdicts of every incident with real dumps in place of directories are in removals.json. Here
dumps are cut, are of older copies, of several or of unknown brokers: nothing wrong may be said.
"""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from replication.evidence.collecting.collection import NoEvidence
from replication.evidence.importer import Import, import_evidence
from replication.evidence.tools.dump_log import DumpedBatch, read_dump_log
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.changed_evidence import (
    DECIDING,
    EXPECTED,
    INCIDENTS,
    Change,
    as_captured,
    broker_logs,
    changed_copy,
    dumped_nodes,
    dumps_for_directories,
    each_incident,
    each_incident_in,
    folded_with,
    living,
    log_directories,
    nodes,
    verdicts_of,
    wrong_verdicts,
)
from tests.dump_text import dump_of, real_dump

QUICK = ("unclean_election__2.8.2", "last_replica_standing__4.1.1__elr_off")
LOSS, DIVERGENCE = "unclean_election__2.8.2", "same_epoch_power_loss__1.1.1"
SEVERAL_SEGMENTS = "not_loss_traps__4.3.0__retention"


def wrong_of(incident: str, folded: list[FoldedPartition]) -> list[str]:
    wrong = []
    for topic_partition in EXPECTED[incident]:
        found = living(folded, topic_partition)
        if found is not None:
            wrong += wrong_verdicts(incident, topic_partition, verdicts_of(found))
    return wrong


def without_directories(evidence: Path, broker: str) -> None:
    for directory in log_directories(evidence):
        if directory.parent.name == broker:
            shutil.rmtree(directory)


def changed_dump(incident: str, broker: str, change: Callable[[str], str]) -> Change:
    """The broker's directories replaced by a dump that somebody changed."""

    def changed(evidence: Path) -> None:
        without_directories(evidence, broker)
        text = real_dump(incident, broker)
        assert text is not None
        (evidence / broker / "dump.txt").write_text(change(text))

    return changed


def decided(incident: str, change: Change, topic_partition: str = "t-0") -> list[str]:
    found = living(folded_with(incident, change), topic_partition)
    assert found is not None
    verdicts = verdicts_of(found)
    return [verdicts[name].partition(":")[0] for name in DECIDING]


def without_lines(change: Change, *brokers: str) -> Change:
    """The same, and the broker logs of these brokers withheld; of all, with who led when."""

    def changed(evidence: Path) -> None:
        change(evidence)
        for path in broker_logs(evidence):
            if not brokers or path.parent.name in brokers:
                path.unlink()
        for path in () if brokers else list(evidence.rglob("__cluster_metadata-0")):
            shutil.rmtree(path)

    return changed


def no_dump(broker: str) -> Change:
    return lambda evidence: without_directories(evidence, broker)


def imported(incident: str, change: Change, into: Path) -> tuple[Import, list[FoldedPartition]]:
    found = import_evidence([changed_copy(incident, change, into)])
    return found, fold_all(found.events())


# -- what is a dump -------------------------------------------------------------------------------


@pytest.mark.parametrize("incident", sorted(EXPECTED))
def test_dumps_made_here_show_what_the_tool_shows(incident: str, tmp_path: Path) -> None:
    for broker in dumped_nodes(incident):
        batches = []
        directory = INCIDENTS / incident / broker / "disk-final"
        for text in (str(real_dump(incident, broker)), dump_of(directory)):
            (tmp_path / "dump").write_text(text)
            found = [o for o in read_dump_log(tmp_path / "dump") if isinstance(o, DumpedBatch)]
            batches.append(
                sorted((o.topic, o.batch._replace(record_count=None)) for o in found if o.topic)
            )
        assert batches[0] == batches[1]


def test_a_dump_gives_the_loss_and_where_its_proof_stands(tmp_path: Path) -> None:
    change = dumps_for_directories(LOSS, nodes(LOSS))
    _, folded = imported(LOSS, change, tmp_path)
    answer = folded[0].answer
    (loss,) = answer.losses
    assert (loss["first_offset"], loss["end_offset"], loss["status"]) == (20, 25, "lost")
    assert any(s["path"].endswith("dump.txt") for f in answer.findings for s in f["source"])
    replica = answer.partition["replicas"][0]
    assert (replica["log_start_offset"], replica["stopped"]) == (0, True)  # Its log ends so.


def test_a_dump_shows_what_diverged() -> None:
    change = dumps_for_directories(DIVERGENCE, ["broker-2"])
    assert decided(DIVERGENCE, change) == ["VIOLATED", "VIOLATED", "UNKNOWN"]
    (found,) = folded_with(DIVERGENCE, change, strict=False)
    (verdict,) = [v for v in found.answer.verdicts if v["invariant"] == "log_matching"]
    # Nothing tells when a dump was made: its broker may have lived on.
    assert (verdict["verdict"], verdict["assuming"]) == ("VIOLATED", ["copies_are_current"])
    (divergence,) = found.answer.divergences
    assert (divergence["first_offset"], divergence["end_offset"]) == (9, 10)


# -- parts of a log -------------------------------------------------------------------------------


def tail_cut(text: str) -> str:
    """The tool was stopped, the last line is torn."""
    return text[: len(text) * 2 // 3]


def head_cut(text: str) -> str:
    """The first line and the last ones: those may be of another segment."""
    lines = text.splitlines(keepends=True)
    return lines[0] + "".join(lines[len(lines) * 2 // 3 :])


def middle_cut(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(lines[: len(lines) // 3] + lines[len(lines) * 2 // 3 :])


def newest_segment(text: str) -> str:
    return "Dumping " + text.rpartition("Dumping ")[2]


def oldest_segment(text: str) -> str:
    return "Dumping " + text.split("Dumping ")[1]


def newest_of_s(text: str) -> str:
    (*_, newest) = [p for p in text.split("Dumping ") if "/s-0/" in p.partition("\n")[0]]
    return f"Dumping {newest}"


def without_the_second(text: str) -> str:
    parts = [p for p in text.split("Dumping ")[1:] if "/s-0/" in p.partition("\n")[0]]
    assert len(parts) > 2
    return "".join(f"Dumping {p}" for p in (parts[0], *parts[2:]))


PARTS = (tail_cut, head_cut, middle_cut, newest_segment, oldest_segment)


@pytest.mark.parametrize(("incident", "part"), each_incident_in(QUICK, PARTS))
def test_a_part_of_a_log_says_nothing_wrong(incident: str, part: Callable[[str], str]) -> None:
    for broker in dumped_nodes(incident):
        assert wrong_of(incident, folded_with(incident, changed_dump(incident, broker, part))) == []

    def everywhere(evidence: Path) -> None:
        for broker in dumped_nodes(incident):
            changed_dump(incident, broker, part)(evidence)

    assert wrong_of(incident, folded_with(incident, everywhere)) == []


@pytest.mark.parametrize("incident", each_incident((*QUICK, DIVERGENCE)))
def test_a_dump_of_an_older_copy_says_nothing_wrong(incident: str) -> None:
    """Nothing tells when a dump was made: one from before a truncation must not pass for now."""
    for old in sorted((INCIDENTS / incident).glob("broker-*/disk-*")):
        for beside in ("everything else", "no acknowledgements", "its size"):
            wrong = wrong_of(incident, folded_with(incident, older_dump(old, beside)))
            if wrong:
                # What is said without the dump, too, is not of its making.
                nothing = older_dump(old, beside, with_dump=False)
                wrong = [
                    w for w in wrong if w not in wrong_of(incident, folded_with(incident, nothing))
                ]
            assert wrong == [], (old, beside)


def older_dump(old: Path, beside: str, *, with_dump: bool = True) -> Change:
    """A dump of one older copy in place of all of its broker's directories."""

    def change(evidence: Path) -> None:
        without_directories(evidence, old.parent.name)
        if with_dump:
            (evidence / old.parent.name / "dump.txt").write_text(dump_of(old))
        if beside == "no acknowledgements":
            (evidence / "acks.jsonl").unlink()
        elif beside == "its size":
            (evidence / "log-dirs.txt").write_text(listing([old]))

    return change


def test_what_is_not_in_a_part_is_not_retention(tmp_path: Path) -> None:
    """Offsets before and after a dump are not known: records there are neither held nor gone. Where
    the whole lines of all brokers exclude a divergence, they do so with a part as without any."""

    change = changed_dump(SEVERAL_SEGMENTS, "broker-1", newest_of_s)
    found = living(imported(SEVERAL_SEGMENTS, change, tmp_path)[1], "s-0")
    assert found is not None
    (replica,) = [r for r in found.answer.partition["replicas"] if r["replica"] == 1]
    assert replica["log_start_offset"] == 15  # as the broker's lines say, not where the dump begins
    assert replica["spans"][0] == [None, 15, 40]
    nothing = no_dump("broker-1")
    for by_lines in (change, nothing):
        assert decided(SEVERAL_SEGMENTS, by_lines, "s-0") == ["HOLDS", "HOLDS", "HOLDS"]


@pytest.mark.slow
@pytest.mark.parametrize("cut", [("broker-1", newest_of_s), ("broker-2", without_the_second)])
def test_where_nobody_knows_who_led_a_part_shows_what_it_shows(
    cut: tuple[str, Callable[[str], str]],
) -> None:
    change = without_lines(changed_dump(SEVERAL_SEGMENTS, *cut))
    found = living(folded_with(SEVERAL_SEGMENTS, change), "s-0")
    assert found is not None
    assert verdicts_of(found)["log_matching"].startswith("UNKNOWN")


def test_a_loss_beyond_a_part_is_lost_by_its_lines_or_as_it_joined_the_isr() -> None:
    """Broker 1 cut what the part does not show: its lines tell so, and without them that it joined
    the ISR of a leader that had committed other records at those offsets."""
    change = changed_dump(LOSS, "broker-1", oldest_half)
    for by_lines in (change, no_dump("broker-1")):
        (cut,) = folded_with(LOSS, by_lines)
        assert [x["status"] for x in cut.answer.losses] == ["lost"]
        assert verdicts_of(cut)["log_matching"] == "HOLDS"
    (cut,) = folded_with(LOSS, without_lines(change, "broker-1"))
    assert [x["status"] for x in cut.answer.losses] == ["lost"]
    assert verdicts_of(cut)["log_matching"].startswith("UNKNOWN")


def test_lines_that_are_missing_end_what_is_known(tmp_path: Path) -> None:
    """With them the line that names the next segment may be missing."""
    found, _ = imported(LOSS, changed_dump(LOSS, "broker-1", middle_cut), tmp_path)
    (unreadable,) = found.unreadable
    assert "lines are missing before the batch at byte" in unreadable.reason
    (dump,) = found.collection.dumps
    assert dump.segments[0].lines.stop == int(unreadable.where.removeprefix("line "))


def oldest_half(text: str) -> str:
    lines = text.splitlines(keepends=True)
    return "".join(lines[: len(lines) // 2])


def test_a_hole_between_segments_is_unknown(tmp_path: Path) -> None:
    change = changed_dump(SEVERAL_SEGMENTS, "broker-2", without_the_second)
    _, folded = imported(SEVERAL_SEGMENTS, change, tmp_path)
    found = living(folded, "s-0")
    assert found is not None
    unseen = [s for s in found.state.replicas[2].log.spans if s.leader_epoch is None]
    assert len(unseen) >= 1
    # By the whole lines of all brokers broker 2 alone wrote, and nobody cut anything.
    assert decided(SEVERAL_SEGMENTS, no_dump("broker-2"), "s-0")[2] == "HOLDS"
    assert verdicts_of(found)["log_matching"] == "HOLDS"


# -- whole by kafka-log-dirs ----------------------------------------------------------------------


def listing(directories: list[Path], change: int = 0) -> str:
    """What kafka-log-dirs --describe prints of brokers' directories."""
    brokers = []
    for directory in directories:
        if "broker" in directory.parent.name:
            partitions = [
                {
                    "partition": path.name,
                    "size": sum(log.stat().st_size for log in path.glob("*.log")) + change,
                    "offsetLag": 0,
                    "isFuture": False,
                }
                for path in sorted(directory.iterdir())
                if path.is_dir() and not path.name.startswith("__")
            ]
            row = {"logDir": "/var/lib/kafka", "error": None, "partitions": partitions}
            number = int(directory.parent.name.rpartition("-")[2])
            brokers.append({"broker": number, "logDirs": [row]})
    return "Querying brokers\n" + json.dumps({"version": 1, "brokers": brokers}) + "\n"


def with_log_dirs(incident: str, change: int = 0) -> Change:
    def changed(evidence: Path) -> None:
        final = [d for d in log_directories(evidence) if d.name == "disk-final"]
        text = listing(final, change)
        dumps_for_directories(incident, nodes(incident))(evidence)
        (evidence / "log-dirs.txt").write_text(text)

    return changed


@pytest.mark.parametrize("incident", each_incident(QUICK))
def test_dumps_that_are_whole_say_nothing_wrong(incident: str) -> None:
    assert wrong_of(incident, folded_with(incident, with_log_dirs(incident))) == []


def test_the_size_says_that_a_dump_is_whole() -> None:
    """Then it ends where the log ended, and what it lacks is not in the log. Where the lines of the
    leader are here as well they tell as much."""
    incident = "last_replica_standing__4.1.1__elr_off"
    for change in (0, 1):
        dumped = with_log_dirs(incident, change)
        assert decided(incident, dumped) == ["VIOLATED", "VIOLATED", "HOLDS"]
        without = without_lines(dumped, "broker-1")
        assert decided(incident, without) == ["VIOLATED", "VIOLATED", "HOLDS"]


# -- whose it is ----------------------------------------------------------------------------------


def test_the_directory_wins(tmp_path: Path) -> None:
    def beside(evidence: Path) -> None:
        (evidence / "broker-1" / "dump.txt").write_text(str(real_dump(LOSS, "broker-2")))

    found, folded = imported(LOSS, beside, tmp_path)
    assert any("the log directory itself is here" in note for note in found.collection.notes)
    (intact,) = as_captured(LOSS)
    assert verdicts_of(folded[0]) == verdicts_of(intact)


@pytest.mark.parametrize("known", ["nothing", "a strange number"])
def test_a_dump_of_an_unknown_broker_is_no_evidence(known: str, tmp_path: Path) -> None:
    def elsewhere(evidence: Path) -> None:
        without_directories(evidence, "broker-1")
        place = evidence if known == "nothing" else evidence / "dumps"
        place.mkdir(exist_ok=True)
        (place / "dump.txt").write_text(str(real_dump(LOSS, "broker-1")))

    found, folded = imported(LOSS, elsewhere, tmp_path)
    assert any("nothing shows which broker" in note for note in found.collection.notes)
    replicas = {r["replica"]: r["spans"] for r in folded[0].answer.partition["replicas"]}
    assert replicas.get(1, []) == []


def test_two_dumps_that_differ_are_no_evidence(tmp_path: Path) -> None:
    def twice(evidence: Path) -> None:
        without_directories(evidence, "broker-2")
        first = str(real_dump(DIVERGENCE, "broker-2"))
        (evidence / "broker-2" / "a.txt").write_text(first)
        (evidence / "broker-2" / "b.txt").write_text(tail_cut(first))

    found, _ = imported(DIVERGENCE, twice, tmp_path)
    assert any("nothing tells which is later" in note for note in found.collection.notes)
    assert decided(DIVERGENCE, twice)[2] == "UNKNOWN"


def test_equal_dumps_and_gzip_are_one(tmp_path: Path) -> None:
    def twice(evidence: Path) -> None:
        without_directories(evidence, "broker-2")
        for name in ("a.txt", "b.txt"):
            text = str(real_dump(DIVERGENCE, "broker-2"))
            (evidence / "broker-2" / name).write_text(text)

    (found,) = folded_with(DIVERGENCE, twice, strict=False)
    assert verdicts_of(found)["log_matching"] == "VIOLATED"


def test_the_path_in_the_dump_names_the_broker_whose_directory_it_is(tmp_path: Path) -> None:
    """Only where the log directories of all brokers are known, and one broker has that one."""
    homes = {"broker-1": "/var/lib/kafka/b1/data", "broker-2": "/var/lib/kafka/b2/data"}

    def at_the_top(evidence: Path) -> None:
        for broker, home in homes.items():
            without_directories(evidence, broker)
            text = str(real_dump(DIVERGENCE, broker)).replace("disk-final", home)
            (evidence / f"{broker[-1]}.txt").write_text(text)

    found, folded = imported(DIVERGENCE, at_the_top, tmp_path)
    assert [dump.broker for dump in found.collection.dumps] == [1, 2]
    assert wrong_of(DIVERGENCE, folded) == []


def test_a_dump_alone_is_no_evidence_of_a_broker(tmp_path: Path) -> None:
    (tmp_path / "dump.txt").write_text(str(real_dump(LOSS, "broker-1")))
    with pytest.raises(NoEvidence, match="nothing shows which broker"):
        import_evidence([tmp_path])


def test_a_re_created_topic_has_no_dump(tmp_path: Path) -> None:
    incident = "not_loss_traps__4.3.0__topic_recreated"
    found, _ = imported(incident, dumps_for_directories(incident, ["broker-2"]), tmp_path)
    assert any("created anew" in note for note in found.collection.notes)

"""What a ticket says above an output tells whose it is: a heading, a shell, and nothing else."""

from pathlib import Path

import pytest

from replication.evidence.collecting.attribution import collect
from replication.evidence.collecting.collection import Collection, NoEvidence
from replication.evidence.collecting.headings import heading_of
from tests.evidence.test_several_outputs import PIECES, RECORD

NAMES_ONE = {
    "Broker 1:": 1,
    "## Broker 2 (leader)": 2,
    "**broker-2 / leader**": 2,
    "--- Broker id: 4 ---": 4,
    "on node #3": 3,
    "This is what we have of broker-1:": 1,
    "Here is the dump from broker 1:": 1,
    "root@kafka-2:/# kafka-dump-log.sh --files x": 2,
    "[kafka@broker-1 ~]$ ./kafka-dump-log.sh": 1,
    "$ kubectl exec my-cluster-kafka-0 -c kafka -- bin/kafka-dump-log.sh": 0,
    "ssh kafka3 kafka-dump-log": 3,
    "ssh -i key -p 22 admin@kafka-3 kafka-dump-log": 3,
    "$ kubectl exec -n kafka-1 broker-2 -- kafka-dump-log.sh": 2,
}
NAMES_NONE = (
    "Broker 2 was restarted at 10", "I think broker 2 lost", "node 1 and node 2:", "Kafka 2.8.2",
    "Kafka 3", "host 10.0.0.3", "Leader: 2",
    "The leader is broker 2.", "Leader: broker 2",
    "leader now broker 2", "follower of broker 1:", "$ kubectl exec -n kafka-1 pod-b -- true",
    "Broker 2, after the restart:", "--- kafka-2.example.com ---", "root@prod:/# kafka-dump-log.sh",
    "", "2",
)  # fmt: skip


@pytest.mark.parametrize("line", [*NAMES_ONE, *NAMES_NONE])
def test_a_line_names_one_broker_or_none(line: str) -> None:
    assert heading_of(line) == NAMES_ONE.get(line)


def collected(folder: Path, text: str) -> Collection:
    """A ticket alone."""
    (folder / "ticket.txt").write_text(text)
    return collect([folder])


def owners(collection: Collection) -> list[tuple[int, int]]:
    return sorted((dump.broker, len(dump.segments)) for dump in collection.dumps)


@pytest.mark.parametrize("fence", ["", "```\n"])
def test_each_dump_of_a_ticket_is_of_the_broker_that_its_heading_names(
    tmp_path: Path, fence: str
) -> None:
    parts = [f"{h}\n\n{fence}{PIECES['dump']}\n{fence}\n" for h in ("Broker 1:", "on broker-2")]
    found = collected(tmp_path, "We lost records.\n\n" + "".join(parts))
    assert owners(found) == [(1, 1), (2, 1)]
    assert sum("by the line above that names it" in note for note in found.notes) == 2


def test_a_dump_without_a_heading_above_it_is_nobodys(tmp_path: Path) -> None:
    found = collected(tmp_path, f"A ticket.\n\n{PIECES['dump']}\n\nBroker 2:\n\n{PIECES['dump']}\n")
    assert owners(found) == [(2, 1)]
    assert any("nothing shows which broker it is of" in note for note in found.notes)


@pytest.mark.parametrize(
    "said", ["Broker 2, the old leader:", "The other replica has more:", "The leader is broker 2.",
             "root@prod-b:/# kafka-dump-log.sh --files x", "ssh 10.0.0.2 kafka-dump-log"],
)  # fmt: skip
def test_other_text_ends_a_heading(tmp_path: Path, said: str) -> None:
    found = collected(tmp_path, f"Broker 1:\n{PIECES['dump']}\n\n{said}\n{PIECES['dump']}\n")
    assert owners(found) == [(1, 1)]
    assert any("nothing shows which broker it is of" in note for note in found.notes)


@pytest.mark.parametrize("between", ["", "\n", "\n```\n```\n"])
def test_a_heading_is_of_all_outputs_below_it(tmp_path: Path, between: str) -> None:
    found = collected(tmp_path, f"Broker 1:\n{PIECES['dump']}\n{between}{PIECES['dump']}\n")
    assert owners(found) == [(1, 2)]


def test_a_heading_that_the_evidence_beside_it_contradicts_is_said(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\nnode.id=2\ncluster.id=A\n")
    made = tmp_path / "t-0"
    made.mkdir()
    (made / "00000000000000000000.log").write_bytes(b"")
    found = collected(tmp_path, f"Broker 1:\n\n{PIECES['dump']}\n")
    assert owners(found) == []
    assert any("lies beside evidence of broker 2" in note for note in found.notes)


def test_what_a_record_holds_is_no_heading(tmp_path: Path) -> None:
    text = f"Broker 1:\n\n{PIECES['dump']}Broker 2:\n{RECORD}\n"
    assert owners(collected(tmp_path, text)) == [(1, 1)]


def test_a_heading_that_the_directory_contradicts_is_said(tmp_path: Path) -> None:
    for broker, home in ((1, "/d"), (2, "/e")):
        listed = PIECES["directories"].replace('"broker": 1', f'"broker": {broker}')
        (tmp_path / f"dirs-{broker}.txt").write_text(listed.replace('"/d"', f'"{home}"'))
    with pytest.raises(NoEvidence, match="names broker 2, its content broker 1's path"):
        collected(tmp_path, f"Broker 2:\n\n{PIECES['dump']}\n")

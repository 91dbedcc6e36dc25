"""Copies of captured incidents with evidence withheld or altered, and the answers about them.

What the tests of removals, clock skew, damage and layouts share: an incident is copied, changed,
read and folded; the truth stays what it was.
"""

import json
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.collecting.collection import NoEvidence
from replication.evidence.digest import write_digest
from replication.evidence.importer import import_evidence
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.dump_text import real_dump

INCIDENTS = Path(__file__).parent / "incidents"
EXPECTED: dict[str, dict[str, dict[str, Any]]] = json.loads(
    (INCIDENTS / "expected.json").read_text()
)
DECIDING = ("committed_records_survive", "acknowledged_records_survive", "log_matching")

# One of each kind of capture beside the quick ones: of ZooKeeper and KRaft, chaos, traced, with
# several segments. The others are more of the same.
MORE = (
    "chaos__2.8.2__seed36", "kip101_scenario_1__0.10.2.2__silent_divergence__trace",
    "isr_shrink_expand__2.8.2__trace", "not_loss_traps__4.3.0__retention",
    "unclean_election__4.1.1",
)  # fmt: skip

Change = Callable[[Path], None]


def marks_of(
    incident: str, quick: Sequence[str], turn: int | None = None
) -> list[pytest.MarkDecorator]:
    """When a check of many captures looks at this one: always, in `make test`, in `make sweeps`.
    turn: where it looks at each in many forms, which; `make test` has every third of them."""
    if incident in quick:
        return []
    if incident in MORE and (turn is None or (MORE.index(incident) + turn) % 3 == 0):
        return [pytest.mark.slow]
    return [pytest.mark.slow, pytest.mark.sweep]


def each_incident(quick: Sequence[str]) -> list[Any]:
    """Every captured incident as a parameter, marked."""
    return [pytest.param(i, marks=marks_of(i, quick)) for i in sorted(EXPECTED)]


def each_incident_in(quick: Sequence[str], forms: Iterable[Any]) -> list[Any]:
    """Every captured incident in every form as two parameters, marked."""
    return [
        pytest.param(i, form, marks=marks_of(i, quick, turn), id=f"{i}-{name_of(form)}")
        for turn, form in enumerate(forms)
        for i in sorted(EXPECTED)
    ]


def name_of(form: Any) -> str:
    """What a form is called."""
    return str(getattr(form, "__name__", form)).replace(" ", "_")


def changed_copy(incident: str, change: Change, into: Path) -> Path:
    """A copy of the incident's evidence below into, changed."""
    evidence = into / "evidence"
    shutil.copytree(INCIDENTS / incident, evidence, ignore=shutil.ignore_patterns("truth.json"))
    change(evidence)
    return evidence


def folded_with(incident: str, change: Change, *, strict: bool = True) -> list[FoldedPartition]:
    """The changed incident's partitions; none where nothing is left. strict: nothing is taken for
    granted."""
    with tempfile.TemporaryDirectory() as into:
        evidence = changed_copy(incident, change, Path(into))
        try:
            return fold_all(import_evidence([evidence]).events(), strict=strict)
        except NoEvidence:
            return []


@cache
def as_captured(incident: str) -> list[FoldedPartition]:
    """The incident's partitions as it was captured; nothing is taken for granted. Judged once for
    all modules that hold changed evidence against it: nobody may change what it returns."""
    return folded_with(incident, lambda evidence: None)


def living(folded: list[FoldedPartition], topic_partition: str) -> FoldedPartition | None:
    """The incarnation of a topic partition that was not deleted: the present one, else the last."""
    found = [
        f
        for f in folded
        if f"{f.identity[1]}-{f.identity[3]}" == topic_partition and not f.state.settings.deleted
    ]
    present = [f for f in found if not f.identity[2].startswith("incarnation-")]
    return (present or found)[-1] if found else None


def verdicts_of(folded: FoldedPartition) -> dict[str, str]:
    """Every invariant's verdict, with the reason where it is UNKNOWN."""
    return {
        v["invariant"]: f"UNKNOWN: {v['reason']}" if v["verdict"] == "UNKNOWN" else v["verdict"]
        for v in folded.answer.verdicts
    }


def wrong_verdicts(incident: str, topic_partition: str, verdicts: dict[str, str]) -> list[str]:
    """Verdicts that contradict the ground truth, UNKNOWN never does."""
    truth = dict(
        zip(DECIDING, EXPECTED[incident][topic_partition]["verdicts"], strict=True),
    )
    wrong = [
        f"{topic_partition} {name}: {verdicts[name]}, but the truth is {right}"
        for name, right in truth.items()
        if verdicts[name] in ("HOLDS", "VIOLATED") and verdicts[name] != right
    ]
    return wrong + [
        f"{topic_partition} {name}: VIOLATED, which no real broker did here"
        for name, verdict in verdicts.items()
        if name not in truth and verdict == "VIOLATED" and name not in MAY_BREAK_WITH_THE_REST
    ]


# Consumers are given what was committed: lost with it. No incident has a consumption log.
MAY_BREAK_WITH_THE_REST = ("consumed_records_survive",)


def log_directories(evidence: Path) -> list[Path]:
    """The copied log directories, by the captures' naming."""
    return sorted(p for p in evidence.glob("*/disk-*") if p.is_dir())


def broker_logs(evidence: Path) -> list[Path]:
    """The brokers' and controllers' text logs."""
    return sorted(p for p in evidence.glob("*/*.log*") if p.is_file())


def nodes(incident: str) -> list[str]:
    """The folders of the brokers and controllers."""
    return sorted(p.name for p in (INCIDENTS / incident).iterdir() if p.is_dir())


def _remove(paths: list[Path]) -> None:
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def _acknowledgements(evidence: Path) -> None:
    _remove([evidence / "acks.jsonl"])


def _payload_ids(evidence: Path) -> None:
    """Acknowledgements that tell offsets alone, as most producers write them down."""
    names = {"payload_id", "producer_id", "producer_epoch", "sequence"}
    for path in evidence.rglob("acks.jsonl"):
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        kept = [{k: v for k, v in line.items() if k not in names} for line in lines]
        path.write_text("".join(json.dumps(line) + "\n" for line in kept))


def _metadata_log(evidence: Path) -> None:
    _remove(list(evidence.rglob("__cluster_metadata-0")))


def _directories(evidence: Path) -> None:
    _remove(log_directories(evidence))


def _directories_of(node: str) -> Change:
    return lambda evidence: _remove([p for p in log_directories(evidence) if node in p.parts])


def _logs(evidence: Path) -> None:
    _remove(broker_logs(evidence))


def _older_copies(evidence: Path) -> None:
    _remove([d for d in log_directories(evidence) if d.name != "disk-final"])


def _final_copies(evidence: Path) -> None:
    _remove([d for d in log_directories(evidence) if d.name == "disk-final"])


def digests_for_directories(evidence: Path) -> None:
    """Every log directory replaced by the digest that a broker's operator would have made."""
    for directory in log_directories(evidence):
        with directory.with_name(f"{directory.name}.digest").open("wb") as stream:
            write_digest(str(directory), stream)
        shutil.rmtree(directory)


def dumps_for_directories(incident: str, chosen: list[str]) -> Change:
    """The chosen brokers' directories replaced by what kafka-dump-log printed of the final ones."""

    def change(evidence: Path) -> None:
        for node in chosen:
            _remove([d for d in log_directories(evidence) if d.parent.name == node])
            text = real_dump(incident, node)
            if text is not None:
                (evidence / node / "dump.txt").write_text(text)

    return change


def dumped_nodes(incident: str) -> list[str]:
    """The brokers of whose directories a real dump is kept."""
    return [node for node in nodes(incident) if real_dump(incident, node) is not None]


def _both(first: Change, second: Change) -> Change:
    def change(evidence: Path) -> None:
        first(evidence)
        second(evidence)

    return change


def removals(incident: str) -> Iterator[tuple[str, Change]]:
    """(what is withheld, how) for one incident; nothing that it does not have."""
    yield "acknowledgement log", _acknowledgements
    yield "payload ids", _payload_ids
    if any((INCIDENTS / incident).rglob("__cluster_metadata-0")):
        yield "metadata log", _metadata_log
    yield "all log directories", _directories
    yield "all broker logs", _logs
    yield "older copies", _older_copies
    yield "final copies", _final_copies
    for node in nodes(incident):
        yield node, lambda evidence, node=node: shutil.rmtree(evidence / node)  # type: ignore[misc]
    yield "directories but for digests", digests_for_directories
    for node in dumped_nodes(incident):
        yield f"directories of {node} but for a dump", dumps_for_directories(incident, [node])
    everywhere = dumps_for_directories(incident, nodes(incident))
    yield "directories but for dumps", everywhere
    yield "acknowledgement log and directories but for dumps", _both(_acknowledgements, everywhere)
    for node in nodes(incident):
        without = _both(_acknowledgements, _directories_of(node))
        yield f"acknowledgement log and directories of {node}", without
    yield "acknowledgement log and directories", _both(_acknowledgements, _directories)
    yield "acknowledgement log and broker logs", _both(_acknowledgements, _logs)

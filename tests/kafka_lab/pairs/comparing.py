"""What `whatif` answers about one run, held against what the other run really lost."""

import json
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.foresight.whatif import DEPENDS, NOT_LOST, NOT_TOLD, STILL_LOST
from replication.paths import project_root
from replication.protocol.ground.events import UNCLEAN_KINDS
from tests.kafka_lab.logs_on_disk import read_batches, records
from tests.kafka_lab.pairs.faults import RUN_FILE, Outcome, load
from tests.kafka_lab.pairs.lives import FORCED, can_be_asked, change

FIRST = "-0"
NEVER_ANSWERED = "never_acknowledged"


class NoAnswer(Exception):
    """The product refused, or gave no JSON."""


def command(name: str, evidence: Path, topic: str, *more: str) -> dict[str, Any]:
    """The JSON of `diagnose` or `whatif`, asked as a person does. Raises NoAnswer."""
    done = subprocess.run(
        [
            *(sys.executable, "-m", "replication", name, str(evidence)),
            *("--format", "json", "--topic", topic, *more),
        ],
        capture_output=True,
        text=True,
        timeout=900,
        cwd=project_root(),
        check=False,
    )
    if done.returncode not in (0, 1, 3) or not done.stdout.strip():
        raise NoAnswer(f"{name}: status {done.returncode}: {done.stderr.strip()[-600:]}")
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def asked(evidence: Path, topic: str, texts: list[str]) -> list[dict[str, Any]]:
    """The losses of `whatif`, each under every one of these changes."""
    sets = [part for text in texts for part in ("--set", text)]
    found: list[dict[str, Any]] = command("whatif", evidence, topic, *sets)["losses"]
    return found


@dataclass
class Kept:
    """One run on the disk."""

    directory: Path
    script: str
    seed: int
    arm: str
    outcomes: list[Outcome]

    @classmethod
    def of(cls, directory: Path) -> "Kept":
        told, outcomes = load(directory)
        return cls(directory, told["script"], told["seed"], told["arm"], outcomes)

    def leader_epochs(self, topic: str) -> dict[str, int | None]:
        """In which leader epoch each record was written that some copy of a log holds."""
        return {
            one.payload_id: one.leader_epoch
            for place in sorted((self.directory / "evidence").glob(f"broker-*/*/{topic}-0"))
            for batch in read_batches(place)
            for one in records(batch)
        }


@dataclass
class Answered:
    """One pair: how each loss of the first run was answered, and what the second run shows."""

    name: str
    said: str
    verdicts: list[tuple[str, str]] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    because: list[str] = field(default_factory=list)


@dataclass
class Score:
    """pairs: those in which the first run lost something. repeated: pairs of runs without any
    change; differing: those that lost different records."""

    pairs: list[Answered] = field(default_factory=list)
    repeated: int = 0
    differing: list[str] = field(default_factory=list)

    def text(self) -> str:
        answers = Counter(answer for pair in self.pairs for answer, _ in pair.verdicts)
        truths = Counter(pair_of for pair in self.pairs for pair_of in pair.verdicts)
        total = sum(answers.values())
        wrong = [line for pair in self.pairs for line in pair.wrong]
        share = answers[DEPENDS] / total if total else 0.0
        lines = [
            f"{len(self.pairs)} pairs, {total} losses: {len(wrong)} wrong, "
            f"{answers[DEPENDS]} DEPENDS ({share:.0%}), {answers[NOT_TOLD]} not told",
            *(
                f"  {n:5} {answer:12} really {truth}"
                for (answer, truth), n in sorted(truths.items())
            ),
            *(f"  {n:5} pairs of {said}" for said, n in self._changes().most_common()),
            f"{self.repeated} topics run twice without a change, {len(self.differing)} lost other "
            "records",
            *self.differing,
        ]
        reasons = Counter(reason for pair in self.pairs for reason in pair.because)
        lines += [f"  {n:5} not told: {reason}" for reason, n in reasons.most_common()]
        return "\n".join([*lines, *wrong])

    def _changes(self) -> Counter[str]:
        return Counter(pair.said for pair in self.pairs)


def runs_under(directory: Path) -> list[Kept]:
    return [Kept.of(path.parent) for path in sorted(directory.glob(f"**/{RUN_FILE}"))]


def compared(kept: list[Kept]) -> Iterator[Answered]:
    """All pairs of runs of one script and seed whose topics differ in one change. Of runs that were
    made twice the first is asked about, and both tell the truth of others."""
    for run in kept:
        if not run.arm.endswith(FIRST):
            continue
        others = [r for r in kept if (r.script, r.seed) == (run.script, run.seed) and r is not run]
        if others and any(outcome.lost for outcome in run.outcomes):
            yield from _of_run(run, others)


def _of_run(run: Kept, others: list[Kept]) -> Iterator[Answered]:
    for outcome in run.outcomes:
        wanted: dict[str, list[tuple[Kept, Outcome]]] = {}
        for other in others if outcome.lost else []:
            for then in other.outcomes:
                pieces = change(outcome.life, then.life)
                if _is_one(pieces) and _can_be_asked(outcome, then):
                    wanted.setdefault(",".join(pieces), []).append((other, then))
        if not wanted:
            continue
        topic, texts = outcome.life.topic, list(wanted)
        losses = asked(run.directory / "evidence", topic, _in_full(run, topic, texts))
        for number, text in enumerate(texts):
            for other, then in wanted[text]:
                name = f"{run.script} {run.seed} {run.arm}/{topic} -> {other.arm}/{then.life.topic}"
                answered = Answered(name, text)
                for loss in losses:
                    _hold(answered, run, outcome, then, loss, loss["if"][number])
                if not answered.verdicts:
                    answered.because.append("diagnose tells no loss of these records")
                yield answered


def _is_one(pieces: list[str]) -> bool:
    """One change; with a release goes what it has."""
    names = [piece.partition("=")[0] for piece in pieces]
    together = {"kafka", "eligible.leader.replicas.version"}
    return len(names) == 1 or (len(names) == 2 and set(names) == together)


def _can_be_asked(was: Outcome, then: Outcome) -> bool:
    """Whether both are one script: an order that somebody gave in the second run alone makes it
    another one, and what was not ordered cannot be left out."""
    if FORCED in then.life.left_out and FORCED not in was.life.left_out and not was.forced:
        return False
    return can_be_asked(was.life, then.life) and (was.forced or not then.forced)


def _in_full(run: Kept, topic: str, texts: list[str]) -> list[str]:
    """With the epochs of the elections that somebody forced, as `diagnose` tells them."""
    if FORCED not in texts:
        return texts
    told = command("diagnose", run.directory / "evidence", topic)
    forced = [
        one["leader_epoch"]
        for partition in told["partitions"]
        for one in partition["elections"]
        if one["kind"] in UNCLEAN_KINDS
    ]
    said = ",".join(f"{FORCED}.{leader_epoch}=no" for leader_epoch in forced) or f"{FORCED}.0=no"
    return [said if text == FORCED else text for text in texts]


def _hold(
    answered: Answered,
    run: Kept,
    was: Outcome,
    then: Outcome,
    row: dict[str, Any],
    cell: dict[str, Any],
) -> None:
    """One loss of the ledger: which sends it means, and what became of them otherwise."""
    if row["tier"] == NEVER_ANSWERED:
        return
    told = [
        n
        for n, name in enumerate(was.sent)
        if (at := was.answered.get(name)) is not None
        and row["first_offset"] <= at < row["end_offset"]
    ]
    meant = was.lost & set(told)
    if len(told) > len({was.answered[was.sent[n]] for n in told}):
        # Several leaders wrote there: whose record the row is of, its leader epoch says.
        known = run.leader_epochs(was.life.topic)
        written_in, named = {n: known.get(was.sent[n]) for n in told}, row["leader_epoch"]
        same = (named,) if named in written_in.values() else (named, None)
        meant = {n for n in meant if named is None or written_in[n] in same}
    if not meant:
        return
    again = meant & then.lost
    truth = "leaderless" if then.kept is None else "lost" if again else "kept"
    answered.verdicts.append((cell["answer"], truth))
    if cell["answer"] == NOT_TOLD:
        answered.because.append(str(cell["because"]))
    if (cell["answer"], truth) in ((NOT_LOST, "lost"), (STILL_LOST, "kept")):
        answered.wrong.append(
            f"WRONG {answered.name} --set {answered.said}: {row['first_offset']}.."
            f"{row['end_offset'] - 1} {cell['answer']}, really {truth}: {sorted(again or meant)}"
        )


def repetitions(kept: list[Kept]) -> Iterator[tuple[str, bool]]:
    """Topics that were run twice without any change, and whether both lost the same records."""
    for number, run in enumerate(kept):
        for other in kept[number + 1 :]:
            if (run.script, run.seed) != (other.script, other.seed):
                continue
            lives = {outcome.life: outcome for outcome in other.outcomes}
            for outcome in run.outcomes:
                if outcome.life in lives:
                    then = lives[outcome.life]
                    name = f"{run.script} {run.seed} {run.arm}, {other.arm}: {outcome.life.topic}"
                    same = outcome.lost == then.lost
                    yield f"{name} {sorted(outcome.lost)} {sorted(then.lost)}", same

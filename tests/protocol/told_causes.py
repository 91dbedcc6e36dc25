"""Random losses as default log levels tell them: is each cause and contract that the ledger names.

The stories of removed_steps.py are told as brokers' lines, directories, the controller's history
and a producers' log, less one or two kinds of artefact. A row may say "unknown"; what it names must
be the machine's cause, found by telling the story without that step, and the contract that the
whole trace shows. `python -m tests.protocol.told_causes N [SEED]` prints what is not.
"""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from replication.machine.scenario_check import fold_steps
from replication.protocol.ground import events as ev
from replication.protocol.ground.model import Span
from replication.protocol.judgement.loss import Loss
from replication.protocol.judgement.view import view_of
from tests.protocol.default_evidence import evidence, folded, left_by, withholdings
from tests.protocol.removed_steps import (
    Told,
    Truth,
    agrees,
    story,
    tell,
    truth,
)


@dataclass
class Score:
    """counts: (what, "right", "unknown" or "WRONG") -> rows. wrong: each kind, one story of it."""

    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    wrong: Counter[str] = field(default_factory=Counter)
    stories: dict[str, str] = field(default_factory=dict)

    def add(self, what: str, outcome: str, kind: str = "", where: str = "") -> None:
        """One row's cause, contract or tier."""
        self.counts[what, outcome] += 1
        if outcome == "WRONG":
            self.wrong[kind] += 1
            self.stories.setdefault(kind, where)


def _lost(told: Told) -> Iterator[tuple[int, Loss]]:
    """Each record that was missed, by content, with the whole trace's row."""
    for loss in view_of(fold_steps(told.world)).losses:
        for content in _contents(loss):
            yield content, loss


def _contents(loss: Loss) -> set[int]:
    """The contents that a row names: of its record, and of what clients were told."""
    spans = [loss.record, *(Span(*promise.span) for promise in loss.promises)]
    return {span.content for span in spans if span.content is not None and span.content >= 0}


class Known:
    """What is so of the lost records of one story. rows: by content, those of the whole trace."""

    def __init__(self, seed: int) -> None:
        self.given, self.lines = story(seed)
        self.told: Told = tell(self.given, self.lines)
        self.rows: dict[int, Loss] = dict(_lost(self.told))
        self.written = [f for _, f in self.told.facts if isinstance(f, ev.LeaderAppended)]
        self._truths: dict[int, Truth] = {}

    def truth(self, content: int) -> Truth:
        """The steps without which this record survives."""
        if content not in self._truths:
            committed = self.rows[content].tier != "acknowledged_by_leader"
            self._truths[content] = truth(self.given, self.lines, content, committed)
        return self._truths[content]

    def meant(self, loss: Loss, offset: int) -> list[int]:
        """The records, by content, that a row may mean at an offset, of those that are lost; a row
        that does not know what became of its records may mean one that is back."""
        made_in, doubtful = loss.record.leader_epoch, loss.status == "undetermined"
        spans = [Span(*p.span) for p in loss.promises] or [loss.record]
        named = {s.content for s in spans if s.first_offset <= offset < s.end_offset}
        contents = {c for c in named if c is not None and c >= 0}
        return [
            f.content
            for f in self.written
            if f.content in self.rows
            and (doubtful or self.rows[f.content].status != "recovered")
            and f.first_offset <= offset < f.end_offset
            and made_in in (None, f.leader_epoch)
            and (not contents or f.content in contents)
        ]


def hold(score: Score, known: Known, loss: Loss, where: str) -> None:
    """One row of the ledger, held against what it can mean."""
    for offset in range(loss.first_offset, loss.end_offset):
        meant = known.meant(loss, offset)
        cause = loss.cause.name
        at = f"{where}: offset {offset}, {loss.tier}, {cause} {loss.contract}"
        if not meant:
            score.add("loss", "WRONG", "no such loss", at)
            continue
        gone = [content for content in meant if known.rows[content].status != "recovered"]
        truths = [known.truth(content) for content in gone]
        rows = [known.rows[content] for content in meant]
        right = any(agrees(loss, true) for true in truths) or any(
            row.cause.name in (cause, *loss.cause.one_of) for row in rows
        )
        named = {"+".join(true.causes) for true in truths}
        named |= {row.cause.name for row in rows if row.status == "recovered"}
        causes = " or ".join(sorted(named))
        told = " or ".join(loss.cause.one_of) or cause
        if told == "unknown" or right:
            score.add(
                "cause",
                "one of" if loss.cause.one_of else "unknown" if told == "unknown" else "right",
            )
        else:
            score.add("cause", "WRONG", f"cause {told}, machine {causes}", at)
        contracts = {row.contract for row in rows}
        if loss.contract == "unknown" or loss.contract in contracts:
            score.add("contract", "unknown" if loss.contract == "unknown" else "right")
        else:
            kind = f"contract {loss.contract} of {loss.tier} by {cause}, whole trace "
            score.add("contract", "WRONG", kind + " or ".join(sorted(contracts)), at)
        tiers = {row.tier for row in rows}
        if tiers == {"acknowledged_by_leader"} and loss.tier != "acknowledged_by_leader":
            score.add("tier", "WRONG", f"tier {loss.tier}, whole trace {tiers}", at)


def rows_of(known: Known, seed: int) -> Iterator[tuple[frozenset[str], Loss]]:
    """Every row that any evidence of the story gives, with what is withheld of it."""
    left = left_by(known.told.world, random.Random(seed), as_on_disk=True)
    for withheld in withholdings(left):
        for loss in view_of(folded(evidence(left, withheld))).losses:
            if loss.status != "recovered":
                yield withheld, loss


def compare(seeds: range) -> Score:
    """Holds the ledger's rows of many stories, as told, against the machine."""
    score = Score()
    for seed in seeds:
        known = Known(seed)
        for withheld, loss in rows_of(known, seed):
            hold(score, known, loss, f"seed {seed} without {sorted(withheld)}")
    return score


def main() -> int:
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 200
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    began = time.process_time()
    score = compare(range(first, first + count))
    for (what, outcome), number in sorted(score.counts.items()):
        print(f"{number:8} {what:10} {outcome}")
    for kind, number in score.wrong.most_common():
        print(f"! {number:6} {kind}: {score.stories[kind]}")
    print(f"{count} stories, {time.process_time() - began:.0f} s")
    return int(bool(score.wrong))


if __name__ == "__main__":
    sys.exit(main())

"""Damaged evidence: no crash, no hang, no VIOLATED that intact evidence would not give.

Seeds are fixed: the same damage in every run. What no checksum covers is described in damage.py;
flips of a leader epoch or a base offset, which can be noticed where another copy has the same
bytes, are tested for what must come of them.
"""

import random
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from replication.evidence.importer import Import, import_evidence
from replication.protocol.ground.events import RecordsAcknowledged
from replication.protocol.judgement.bounded import FoldedPartition, fold_all
from tests.changed_evidence import EXPECTED, as_captured, changed_copy, folded_with
from tests.damage import DAMAGES, batch_starts, segments

LONGEST_SECONDS = 60.0
QUICK_SEEDS, MORE_SEEDS = range(1), range(1, 4)
# Found by wider searches: each broke something once.
FOUND = {
    "flipped in logs": (108, 307),
    "zeros": (359, 383),
    "cut": (489,),
    "dropped lines": (171, 180, 224, 342, 379, 407, 472),
}
ALL_SEEDS = range(40)
LEADER_EPOCH_AT = 15
BASE_OFFSET_AT = 7

INCIDENTS = sorted(EXPECTED)


def read(evidence: Path) -> tuple[Import, list[FoldedPartition]]:
    imported = import_evidence([evidence])
    return imported, fold_all(imported.events())


def violated(folded: list[FoldedPartition]) -> set[tuple[str, int, str]]:
    return {
        (f.identity[1], f.identity[3], v["invariant"])
        for f in folded
        for v in f.answer.verdicts
        if v["verdict"] == "VIOLATED"
    }


def marks_of_seed(seed: int) -> list[pytest.MarkDecorator]:
    """When it is looked at: always, in `make test` (as are those once found), in `make sweeps`."""
    if seed in QUICK_SEEDS:
        return []
    known = seed in MORE_SEEDS or seed not in ALL_SEEDS
    return [pytest.mark.slow] if known else [pytest.mark.slow, pytest.mark.sweep]


def damages() -> Iterator[Any]:
    for damage in DAMAGES:
        for seed in (*ALL_SEEDS, *FOUND.get(damage, ())):
            yield pytest.param(damage, seed, marks=marks_of_seed(seed))


@pytest.mark.parametrize(("damage", "seed"), list(damages()))
def test_damage_invents_nothing(damage: str, seed: int) -> None:
    choose = random.Random(f"{damage} {seed}")
    incident = choose.choice(INCIDENTS)
    with tempfile.TemporaryDirectory() as into:
        hit: list[Path] = []
        evidence = changed_copy(
            incident, lambda e: hit.extend(DAMAGES[damage](e, choose)), Path(into)
        )
        begun = time.monotonic()
        imported, folded = read(evidence)
        assert time.monotonic() - begun < LONGEST_SECONDS
        assert violated(folded) - violated(as_captured(incident)) == set(), incident
        listed = {Path(u.path).name for u in imported.unreadable}
        assert {p.name for p in hit} <= listed


def flip_in_header(evidence: Path, choose: random.Random, place: int) -> None:
    """One of the lower bits of a byte of one batch's header, in one copy of one replica."""
    path = choose.choice([p for p in segments(evidence) if not p.parent.name.startswith("__")])
    content = bytearray(path.read_bytes())
    start = choose.choice(batch_starts(bytes(content)))
    content[start + place] ^= 1 << choose.randrange(4)
    path.write_bytes(content)


@pytest.mark.parametrize("place", [LEADER_EPOCH_AT, BASE_OFFSET_AT])
@pytest.mark.parametrize(
    "seed",
    [pytest.param(s, marks=marks_of_seed(s)) for s in ALL_SEEDS],
)
def test_what_the_checksum_leaves_out_is_a_header_mismatch(place: int, seed: int) -> None:
    """The same bytes under another leader epoch, or at another offset, are no other record."""
    choose = random.Random(f"{place} {seed}")
    incident = choose.choice([i for i in INCIDENTS if "__0.10" not in i])
    folded = folded_with(incident, lambda evidence: flip_in_header(evidence, choose, place))
    assert violated(folded) - violated(as_captured(incident)) == set(), incident
    settled = [d for f in folded for d in f.answer.divergences if d["status"] == "settled"]
    assert len(settled) <= len(EXPECTED[incident].get("t-0", {}).get("divergent", [])), incident


def test_no_record_that_counts_as_unread_hides_an_acknowledgements_epoch(tmp_path: Path) -> None:
    """One bit of a leader epoch in one copy: other copies tell in which epoch the record is."""
    incident = "isr_shrink_expand__2.8.2__trace"
    evidence = changed_copy(
        incident, lambda e: flip_in_header(e, random.Random(1), LEADER_EPOCH_AT), tmp_path
    )
    facts = [event.fact for event in import_evidence([evidence]).events()]
    told = [fact for fact in facts if isinstance(fact, RecordsAcknowledged)]
    assert {fact.leader_epoch for fact in told} == {0}

"""Each artefact of a captured incident damaged, one at a time: cut, emptied, gone, flipped, of
another time. An answer may then say less; it may say nothing else.

`python -m tests.damaged_artefacts [INCIDENT...] [--share N]` damages every N-th file of them in
every way and prints what became another answer; the tests do some. Held are each verdict, and for
each lost offset cause and contract: equal, or UNKNOWN (unknown, undetermined), or no more told.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from replication.evidence.collecting.collection import NoEvidence
from replication.protocol.judgement.bounded import FoldedPartition
from tests.changed_evidence import EXPECTED, INCIDENTS, Change
from tests.mutated_evidence import folded, mutated

SILENT = ("unknown", "undetermined")
TEXT = (".log", ".jsonl", ".txt")
Damage = Callable[[bytes, Path], bytes | None]
"""From a file's bytes, and where it lies, to the damaged ones; None: the file is gone."""


def cut_at(share: float) -> Damage:
    return lambda content, _: content[: int(len(content) * share)]


def cut_within_a_batch(content: bytes, _: Path) -> bytes:
    """As a copy that was broken off."""
    return content[:700] if len(content) > 700 else content[: len(content) - 1]


def zeros_at_the_end(content: bytes, _: Path) -> bytes:
    half = len(content) // 2
    return content[:half] + bytes(len(content) - half)


def flipped(content: bytes, path: Path) -> bytes:
    """One bit in eight places that a checksum covers, or that no number stands in."""
    choose = random.Random(path.name)
    damaged = bytearray(content)
    for place in choose.sample(range(len(content)), min(8, len(content))):
        if path.suffix == ".log" and place % 61 < 20:
            continue
        if not chr(content[place]).isdigit():
            damaged[place] ^= 0x10
    return bytes(damaged)


def of_another_time(content: bytes, path: Path) -> bytes | None:
    """The same file of another copy of the same broker's directory."""
    directory = next((p for p in path.parents if p.name.startswith("disk-")), None)
    others = sorted(directory.parent.glob("disk-*")) if directory is not None else []
    for other in others:
        if other != directory and (other / path.relative_to(directory or other)).is_file():
            return (other / path.relative_to(directory or other)).read_bytes()
    return content


WHOLE: dict[str, Damage] = {
    "gone": lambda _, __: None,
    "emptied": lambda _, __: b"",
    "cut to a third": cut_at(0.34),
    "cut to nine tenths": cut_at(0.9),
    "cut within a batch": cut_within_a_batch,
    "zeros at the end": zeros_at_the_end,
    "flipped": flipped,
    "of another time": of_another_time,
}


def damages(path: Path) -> Iterator[tuple[str, Damage]]:
    """(what, how): what may happen to a file of this kind. Text is not flipped: it has no sum."""
    in_text = path.suffix != ".log" or not path.parent.name[-1].isdigit() or "disk" not in str(path)
    for what, how in WHOLE.items():
        if in_text and what in ("flipped", "zeros at the end", "cut within a batch"):
            continue
        yield what, how


def artefacts(incident: str) -> list[Path]:
    """Every file of it, but for its truth."""
    folder = INCIDENTS / incident
    files = sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return [p for p in files if p.name != "truth.json"]


def damaged(artefact: Path, how: Damage) -> Change:
    """The change that does it to one file."""

    def change(evidence: Path) -> None:
        path = evidence / artefact
        content = how(path.read_bytes(), path)
        if content is None:
            path.unlink()
        else:
            path.write_bytes(content)

    return change


def lost(partition: FoldedPartition) -> dict[int, set[tuple[str, str]]]:
    """(cause, contract) of each lost offset."""
    found: dict[int, set[tuple[str, str]]] = {}
    for row in partition.answer.losses:
        for offset in range(row["first_offset"], row["end_offset"]):
            found.setdefault(offset, set()).add((row["cause"], row["contract"]))
    return found


def others_than(whole: list[FoldedPartition], now: list[FoldedPartition]) -> list[str]:
    """What the answer says now, and did not say; of partitions by name and number."""
    before = {(f.identity[1], f.identity[3], f.identity[2]): f for f in whole}
    found: list[str] = []
    for partition in now:
        key = (partition.identity[1], partition.identity[3], partition.identity[2])
        same = before.get(key) or next((f for k, f in before.items() if k[:2] == key[:2]), None)
        if same is not None:
            found += [f"{key[0]}-{key[1]} {text}" for text in _others(same, partition)]
    return found


def _others(whole: FoldedPartition, now: FoldedPartition) -> Iterator[str]:
    told = {v["invariant"]: v["verdict"] for v in whole.answer.verdicts}
    for verdict in now.answer.verdicts:
        name, says = verdict["invariant"], verdict["verdict"]
        if says != "UNKNOWN" and told[name] not in (says, "UNKNOWN"):
            yield f"{name}: {says}, was {told[name]}"
    were = lost(whole)
    for offset, rows in lost(now).items():
        if offset not in were:
            yield f"offset {offset} lost, was not"
            continue
        for place, what in enumerate(("cause", "contract")):
            new = {r[place] for r in rows} - {r[place] for r in were[offset]} - set(SILENT)
            if new:
                yield f"offset {offset}: {what} {sorted(new)}, was {sorted(were[offset])}"


def main(arguments: list[str]) -> int:
    """Prints the counts and each other answer; exit status 1 if there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("incidents", nargs="*", default=list(EXPECTED))
    parser.add_argument("--share", type=int, default=1)
    options = parser.parse_args(arguments)
    runs: Counter[str] = Counter()
    bad: list[str] = []
    for incident in options.incidents or list(EXPECTED):
        whole = folded([INCIDENTS / incident])
        for artefact in artefacts(incident)[:: options.share]:
            for what, how in damages(INCIDENTS / incident / artefact):
                runs[what] += 1
                try:
                    now = mutated(incident, damaged(artefact, how))
                except NoEvidence:
                    continue
                for text in others_than(whole, now):
                    bad.append(f"{incident}: {artefact} {what}: {text}")
                    print(bad[-1], flush=True)
    print(f"{sum(runs.values())} damages ({dict(runs)}), {len(bad)} other answers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

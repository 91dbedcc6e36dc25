"""Each artefact of a captured incident damaged, one at a time: cut, torn, emptied, gone, doubled,
turned, of another time. An answer may then say less; it may say nothing else.

`python -m tests.damaged_artefacts [INCIDENT...] [--share N --part K]` damages every N-th file of
them, from the K-th on, in every way and prints what became another answer; the tests do some. Held
are each verdict, for each lost offset cause, contract and status, how many are said to be lost, and
the headline: equal, or UNKNOWN (unknown, undetermined, "at least"), or no more told. What no reader
can see is counted by its class.
"""

import argparse
import json
import random
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

from replication.protocol.judgement.bounded import FoldedPartition
from replication.reports.headline import headline
from tests.changed_evidence import EXPECTED, INCIDENTS, Change, as_captured, folded_with
from tests.damage import unchecked_places

SILENT = ("unknown", "undetermined")
WRONGLY_HELD = ("HOLDS", "VIOLATED")
BINARY = re.compile(r"\d{20}(-\d{10})?\.(log|snapshot|checkpoint)|bootstrap\.checkpoint")
UNREAD = (
    "truth.json",
    "bootstrap.checkpoint",
    "cleaner-offset-checkpoint",
    "log-cleaner.log",
)
Damage = Callable[[bytes, Path], bytes | None]
"""From a file's bytes, and where it lies, to the damaged ones; None: the file is gone."""


def cut_at(share: float) -> Damage:
    return lambda content, _: content[: int(len(content) * share)]


def torn(content: bytes, _: Path) -> bytes:
    """Within its last line or batch, as a copy that was broken off."""
    return content[:-5]


def cut_within_a_batch(content: bytes, _: Path) -> bytes:
    return content[:700] if len(content) > 700 else content[: len(content) - 1]


def zeros_at_the_end(content: bytes, _: Path) -> bytes:
    half = len(content) // 2
    return content[:half] + bytes(len(content) - half)


def lines(first: float, end: float) -> Damage:
    """Only some of the lines, each whole."""

    def damage(content: bytes, _: Path) -> bytes:
        all_lines = content.splitlines(keepends=True)
        return b"".join(all_lines[int(len(all_lines) * first) : int(len(all_lines) * end)])

    return damage


def without_the_middle(content: bytes, path: Path) -> bytes | None:
    head, tail = lines(0, 0.4)(content, path), lines(0.6, 1)(content, path)
    return (head or b"") + (tail or b"")


def turned(content: bytes, path: Path) -> bytes:
    """One bit where a checksum covers it, or else where neither number nor name stands."""
    places = [*range(len(content))]
    if BINARY.fullmatch(path.name):
        spared = unchecked_places(content)
        places = [p for p in places if p not in spared]
    else:
        places = [p for p in places if not (chr(content[p]).isalnum() or content[p] in b"-_")]
    if not places:
        return content
    damaged = bytearray(content)
    damaged[random.Random(path.name).choice(places)] ^= 0x10
    return bytes(damaged)


def of_another_time(content: bytes, path: Path) -> bytes:
    """The same file of another copy of the same broker's directory."""
    directory = next((p for p in path.parents if p.name.startswith("disk-")), None)
    for other in sorted(directory.parent.glob("disk-*")) if directory is not None else []:
        file = other / path.relative_to(directory or other)
        if other != directory and file.is_file() and file.read_bytes() != content:
            return file.read_bytes()
    return content


LINES_GONE = "lines of a producers' log are gone, and every line that is left is whole"
OTHER_CHECKPOINT = "an offset checkpoint of another time lies among the files of a directory"
OTHER_LIFE = "a segment of the same topic's life before lies in the directory of the next"
LIMITS = (LINES_GONE, OTHER_CHECKPOINT, OTHER_LIFE)
ANY: dict[str, Damage] = {
    "gone": lambda _, __: None,
    "emptied": lambda _, __: b"",
    "doubled": lambda content, _: content + content,
    "cut to a third": cut_at(0.34),
    "cut in half": cut_at(0.5),
    "cut to nine tenths": cut_at(0.9),
    "torn": torn,
    "turned": turned,
    "of another time": of_another_time,
}
IN_BATCHES: dict[str, Damage] = {
    "cut within a batch": cut_within_a_batch,
    "zeros at the end": zeros_at_the_end,
}
IN_LINES: dict[str, Damage] = {
    "first lines only": lines(0, 0.5),
    "last lines only": lines(0.5, 1),
    "without the middle": without_the_middle,
}
WHOLE = ANY | IN_BATCHES | IN_LINES


def damages(path: Path) -> Iterator[tuple[str, Damage]]:
    """(what, how): what may happen to a file of this kind, where it changes it."""
    content = path.read_bytes()
    for what, how in (ANY | (IN_BATCHES if BINARY.fullmatch(path.name) else IN_LINES)).items():
        if how(content, path) != content:
            yield what, how


def artefacts(incident: str) -> list[Path]:
    """Every file of it that is read, but for its truth."""
    folder = INCIDENTS / incident
    files = sorted(p.relative_to(folder) for p in folder.rglob("*") if p.is_file())
    return [p for p in files if p.name not in UNREAD]


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


def lost(partition: FoldedPartition) -> dict[int, set[tuple[str, str, str]]]:
    """(cause, contract, status) of each lost offset."""
    found: dict[int, set[tuple[str, str, str]]] = {}
    for row in partition.answer.losses:
        for offset in range(row["first_offset"], row["end_offset"]):
            told = (row["cause"], row["contract"], row["status"])
            found.setdefault(offset, set()).add(told)
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
        if says != told[name] and (says == "VIOLATED" or (says, told[name]) == WRONGLY_HELD):
            yield f"{name}: {says}, was {told[name]}"
    were = lost(whole)
    for offset, rows in lost(now).items():
        if offset not in were:
            yield f"offset {offset} lost, was not"
            continue
        for place, what in enumerate(("cause", "contract", "status")):
            new = {r[place] for r in rows} - {r[place] for r in were[offset]} - set(SILENT)
            if new:
                yield f"offset {offset}: {what} {sorted(new)}, was {sorted(were[offset])}"
    yield from _overclaims(whole, now)


def _overclaims(whole: FoldedPartition, now: FoldedPartition) -> Iterator[str]:
    """What the first sentence says too much: that nothing is lost, or an exact number too small."""
    said = said_first(now)
    is_lost = {v["invariant"]: v["verdict"] == "VIOLATED" for v in whole.answer.verdicts}
    gone, known = (sum(len(rows) > 0 for rows in lost(f).values()) for f in (whole, now))
    hedged = "whether records vanished without a trace is not known" in said
    if (gone and said.startswith(("Nothing lost", "No loss")) and not hedged) or (
        is_lost["committed_records_survive"] and said.startswith("No committed record lost")
    ):
        yield f"headline: {said}"
    elif known < gone and re.match(r"\d", said) and "cannot tell" not in said:
        yield f"headline: {said}; {gone} are"


def said_first(partition: FoldedPartition) -> str:
    """The headline about one partition."""
    made = partition.answer
    return headline(
        {
            "partitions": [made.partition],
            "verdicts": made.verdicts,
            "losses": made.losses,
            "divergences": made.divergences,
        }
    )


def limit(incident: str, artefact: Path, how: Damage, now: list[FoldedPartition]) -> str | None:
    """The class of what no reader can see (docs/limits.md) that the damage is of; None: of none.

    Where lines are gone, what the others name must be told of in full.
    """
    path = INCIDENTS / incident / artefact
    left = how(path.read_bytes(), path) or b""
    if BINARY.fullmatch(path.name) and incident.endswith("topic_recreated"):
        return OTHER_LIFE if how is of_another_time else None
    if path.name.endswith("-offset-checkpoint"):
        return OTHER_CHECKPOINT if how is of_another_time else None
    if path.name != "acks.jsonl" or how not in IN_LINES.values():
        return None
    truth = json.loads((INCIDENTS / incident / "truth.json").read_text())["partitions"]
    for partition in now:
        told = truth.get(f"{partition.identity[1]}-{partition.identity[3]}", {})
        named = [a for a in told.get("lost_acked", ()) if a["payload_id"].encode() in left]
        if len(lost(partition)) < len(named):
            return None
    return LINES_GONE


def main(arguments: list[str]) -> int:
    """Prints the counts and each other answer; exit status 1 if there is one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("incidents", nargs="*", default=list(EXPECTED))
    parser.add_argument("--share", type=int, default=1)
    parser.add_argument("--part", type=int, default=0)
    options = parser.parse_args(arguments)
    runs: Counter[str] = Counter()
    bad: list[str] = []
    for incident in options.incidents:
        whole = as_captured(incident)
        for artefact in artefacts(incident)[options.part :: options.share]:
            for what, how in damages(INCIDENTS / incident / artefact):
                runs[what] += 1
                now = folded_with(incident, damaged(artefact, how))
                others = others_than(whole, now)
                unseen = limit(incident, artefact, how, now) if others else None
                if unseen is not None:
                    runs[unseen] += 1
                    continue
                bad += [f"{incident}: {artefact} {what}: {text}" for text in others]
                print(*bad[len(bad) - len(others) :], sep="\n", end="\n" if others else "")
    for unseen in LIMITS:
        print(f"by a named limit: {runs.pop(unseen, 0)}: {unseen}")
    print(f"{sum(runs.values())} damages ({dict(runs)}), {len(bad)} other answers")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

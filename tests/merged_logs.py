"""Captured incidents' broker logs put together into one file, with the truth of whose each line is.

`shares` counts which lines of such a file are given to the right broker, to nobody, or to a wrong
one: run as `python -m tests.merged_logs`.
"""

import random
import re
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path

from replication.evidence.collecting.attribution import collect
from replication.evidence.collecting.broker_text_log import BrokerLog
from tests.changed_evidence import EXPECTED, INCIDENTS, broker_logs
from tests.test_layouts import messages

# A message, when it was printed as its broker's clock has it, and the node that wrote it.
Written = tuple[str, str, int]
_STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
_PLACE = re.compile(r"/var/lib/kafka/[bc]\d+(?:/data)?|/lab/(?:broker|controller)-\d+/data")


def written(incident: str) -> list[Written]:
    """All messages, each broker's in its own order."""
    found = []
    for path in broker_logs(INCIDENTS / incident):
        node = int(path.parent.name.rpartition("-")[2])
        found += [(message, message[:25], node) for message in messages(path)]
    return found


def by_time(lines: list[Written]) -> list[Written]:
    return sorted(lines, key=lambda line: line[1])


def on_one_path(text: str) -> str:
    """As a machine prints it whose disk has the same path as the others'."""
    assert _PLACE.search(text) or "dir=/" not in text
    return _PLACE.sub("/var/kafka", text)


def one_path(lines: list[Written]) -> list[Written]:
    """As on machines of one make, where every broker's disk has the same path."""
    return [(_PLACE.sub("/var/kafka", message), at, node) for message, at, node in lines]


def skewed(lines: list[Written], ahead: Sequence[int] = (0, 3, 6)) -> list[Written]:
    """As machines whose clocks differ: by so many seconds, the nodes in turn."""

    def shifted(found: re.Match[str], seconds: int) -> str:
        at = datetime.strptime(found[1], "%Y-%m-%d %H:%M:%S") + timedelta(seconds=seconds)
        return f"[{at:%Y-%m-%d %H:%M:%S}"

    result = []
    for message, _, node in lines:
        told = _STAMP.sub(
            lambda found, n=node: shifted(found, ahead[n % len(ahead)]), message, count=1
        )  # type: ignore[misc]
        result.append((told, told[:25], node))
    return result


@dataclass
class Merged:
    """A file below a folder, and the node that wrote each of its lines."""

    nodes: dict[str, list[int]] = field(default_factory=dict)

    def write(self, path: Path, lines: list[Written]) -> None:
        rows = [(row, node) for message, _, node in lines for row in message.split("\n")]
        text = "".join(f"{row}\n" for row, _ in rows)
        path.write_bytes(text.encode("utf-8", "surrogateescape"))
        self.nodes[str(path)] = [node for _, node in rows]


def whole(lines: list[Written], folder: Path, merged: Merged) -> None:
    merged.write(folder / "server.log", lines)


def in_pieces(lines: list[Written], folder: Path, merged: Merged) -> None:
    """Rotated: seven files in one folder, some of which name one broker alone."""
    size = len(lines) // 7 + 1
    for number in range(7):
        name = "server.log" if number == 6 else f"server.log.{6 - number}"
        merged.write(folder / name, lines[number * size : (number + 1) * size])


def a_window(seed: int) -> Callable[[list[Written], Path, Merged], None]:
    """What is left of it: some lines in the middle."""

    def cut(lines: list[Written], folder: Path, merged: Merged) -> None:
        chance = random.Random(seed)
        first = chance.randrange(len(lines))
        merged.write(folder / "server.log", lines[first : first + chance.randrange(20, 400)])

    return cut


def a_random_form(seed: int) -> Counter[str]:
    """How many lines go to whom in one incident's logs, merged, skewed, cut and rotated anyhow,
    some pieces being lost. Only of what several brokers are named in (docs/limits.md)."""
    chance = random.Random(seed)
    lines = written(chance.choice(sorted(EXPECTED)))
    lines = skewed(lines, [chance.choice((0, 3, chance.randrange(-600, 600))) for _ in range(4)])
    lines = one_path(lines) if chance.random() < 0.5 else lines
    lines = by_time(lines) if chance.random() < 0.9 else lines
    first = chance.choice((0, chance.randrange(len(lines))))
    lines = lines[first : first + chance.choice((len(lines), chance.randrange(500, 4000)))]
    count = chance.randrange(1, 20)
    lost = set(chance.sample(range(count), chance.randrange(count)))

    def lay_out(lines: list[Written], folder: Path, merged: Merged) -> None:
        size = len(lines) // count + 1
        for number in set(range(count)) - lost:
            name = "server.log" if number == 0 else f"server.log.{number}"
            place = (count - 1 - number) * size
            merged.write(folder / name, lines[place : place + size])

    told: Counter[str] = Counter()
    for (outcome, _), count in attributed(lines, lay_out, only_of_several=True).items():
        told[outcome] += count
    return told


def _given(log: BrokerLog) -> Iterator[tuple[int | None, int, str]]:
    """(the broker that it is given to, line, kind) of everything that a log tells."""
    alone = log.broker if log.speaks_for_one else None
    for packed in log.lines:
        broker = packed.about[0]
        for fact in packed:
            yield alone if broker is None else broker, fact.line, fact.kind
    for fact in log.processes:
        yield alone if fact.broker is None else fact.broker, fact.line, fact.kind


def attributed(
    lines: list[Written],
    lay_out: Callable[[list[Written], Path, Merged], None],
    *,
    only_of_several: bool = False,
) -> Counter[tuple[str, str]]:
    """How many lines of each kind are given to the right broker, to nobody, to a wrong one."""
    found: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as name:
        merged = Merged()
        lay_out(lines, Path(name), merged)
        for log in collect([Path(name)]).logs:
            if only_of_several and not log.several:
                continue
            nodes = merged.nodes[log.path]
            for broker, line, kind in _given(log):
                right = broker == nodes[line - 1]
                outcome = "nobody" if broker is None else "right" if right else "wrong"
                found[outcome, kind] += 1
    return found


Worlds = dict[str, Callable[[list[Written]], list[Written]]]
WORLDS: Worlds = {
    "one installation": by_time,
    "one path for all": lambda lines: by_time(one_path(lines)),
    "clocks that differ": lambda lines: by_time(skewed(lines)),
    "clocks that differ, one path": lambda lines: by_time(skewed(one_path(lines))),
    "one behind the other": lambda lines: lines,
    "one behind the other, one path": one_path,
}


def main() -> None:
    """Prints the shares of every incident in every world, whole, rotated and in windows."""
    total: Counter[str] = Counter()
    for incident in sorted(EXPECTED):
        lines = written(incident)
        for world, order in WORLDS.items():
            ways = {"whole": whole, "rotated": in_pieces, "windows": a_window(0)}
            for way, lay_out in ways.items():
                seen: Counter[str] = Counter()
                for (outcome, _), count in attributed(order(lines), lay_out).items():
                    seen[outcome] += count
                total.update(seen)
                told = ", ".join(f"{seen[o]} {o}" for o in ("right", "nobody", "wrong"))
                print(f"{incident}  {world}  {way}: {told}", flush=True)
    print("all:", ", ".join(f"{total[o]} {o}" for o in ("right", "nobody", "wrong")))


if __name__ == "__main__":
    main()

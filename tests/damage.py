"""Ways in which evidence is damaged on its way, drawn from a seed: what the fuzz tests apply.

What no reader can notice is not drawn, since no check covers it: in a record batch the base offset
and the leader epoch lie outside the CRC (they have a test of their own), and text has none at all,
so a digit that becomes another digit, in a log line, a checkpoint file or a producer's log, is a
different fact.
"""

import random
from collections.abc import Callable
from pathlib import Path

from tests.changed_evidence import broker_logs, log_directories

# Of a version 2 batch header: base offset, length, leader epoch. Only the length is noticed.
UNCHECKED_BYTES = (*range(8), *range(12, 16))
LOG_OVERHEAD = 12


def segments(evidence: Path) -> list[Path]:
    """Segment files with something in them, the metadata log's too."""
    found = [p for d in log_directories(evidence) for p in sorted(d.rglob("*.log"))]
    return [p for p in found if p.stat().st_size]


def batch_starts(content: bytes) -> list[int]:
    """Where the batches (or messages) of a segment begin."""
    starts = []
    at = 0
    while at + LOG_OVERHEAD < len(content):
        size = int.from_bytes(content[at + 8 : at + LOG_OVERHEAD], "big")
        if size <= 0:
            break
        starts.append(at)
        at += LOG_OVERHEAD + size
    return starts


def unchecked_places(content: bytes) -> set[int]:
    """The bytes of a segment that no checksum covers: offsets in old formats, epochs in new."""
    return {start + place for start in batch_starts(content) for place in UNCHECKED_BYTES}


def flip_in_segments(evidence: Path, choose: random.Random) -> list[Path]:
    """One to four bytes of one to three segments."""
    files = segments(evidence)
    hit = []
    for path in choose.sample(files, min(len(files), choose.randint(1, 3))):
        content = path.read_bytes()
        flipped = bytearray(content)
        spared = unchecked_places(content)
        for _ in range(choose.randint(1, 4)):
            place = choose.randrange(len(content))
            if place not in spared:
                flipped[place] ^= choose.randint(1, 255)
        path.write_bytes(flipped)
        if flipped != content:
            hit.append(path)
    return hit


def flip_in_logs(evidence: Path, choose: random.Random) -> list[Path]:
    """Up to forty bytes of one broker's log; digits are spared."""
    path = choose.choice(broker_logs(evidence))
    content = bytearray(path.read_bytes())
    for _ in range(choose.randint(1, 40)):
        place = choose.randrange(len(content))
        if not chr(content[place]).isdigit():
            content[place] = choose.choice(b"\x00\xff\xc3 xX[]()=,\n")
    path.write_bytes(content)
    return []


def cut_files(evidence: Path, choose: random.Random) -> list[Path]:
    """One to four files of any kind end early."""
    files = sorted(p for p in evidence.rglob("*") if p.is_file() and p.stat().st_size)
    for path in choose.sample(files, min(len(files), choose.randint(1, 4))):
        content = path.read_bytes()
        path.write_bytes(content[: choose.randrange(len(content))])
    return []


def zero_blocks(evidence: Path, choose: random.Random) -> list[Path]:
    """A stretch of a segment is zeros, as file systems leave it after a crash."""
    path = choose.choice(segments(evidence))
    content = bytearray(path.read_bytes())
    start = choose.randrange(len(content))
    end = min(len(content), start + choose.randint(1, 4096))
    content[start:end] = bytes(end - start)
    path.write_bytes(content)
    return []


def shuffle_within_a_millisecond(evidence: Path, choose: random.Random) -> list[Path]:
    """Lines of one time stamp change places, as threads may write them."""
    for path in broker_logs(evidence):
        lines = path.read_bytes().split(b"\n")
        groups: list[list[bytes]] = []
        for line in lines:
            whole = line[:1] == b"[" and line[24:26] == b"] "
            if groups and whole and groups[-1][0][:26] == line[:26]:
                groups[-1].append(line)
            else:
                groups.append([line])
        for group in groups:
            choose.shuffle(group)
        path.write_bytes(b"\n".join(line for group in groups for line in group))
    return []


def drop_lines(evidence: Path, choose: random.Random) -> list[Path]:
    """Lines are missing here and there, as a full disk leaves them out."""
    for path in broker_logs(evidence):
        lines = path.read_bytes().split(b"\n")
        path.write_bytes(b"\n".join(line for line in lines if choose.random() > 0.02))
    return []


DAMAGES: dict[str, Callable[[Path, random.Random], list[Path]]] = {
    "flipped in segments": flip_in_segments,
    "flipped in logs": flip_in_logs,
    "cut": cut_files,
    "zeros": zero_blocks,
    "shuffled": shuffle_within_a_millisecond,
    "dropped lines": drop_lines,
}

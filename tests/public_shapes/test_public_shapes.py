"""Evidence in the shapes that people show in public: each in its own words and numbers, with the
right answer and why.

A shape is a section of one of the text files here:

    === its name
    why: what the right answer is, and why
    args: --kafka 2.8.2 --broker 1 FOLDER/PATH
    file PATH
    | a line of the file
    |e a line with escapes, \\x00 for a zero byte
    disk PATH broker=1 cluster=abc stopped
    part t-0 0:0-20 1:20-25b hw=25
    expect ...

`file PATH as crlf bom` is written so; also `utf-16`, `latin-1`, `quoted-printable`. `part` gives
a partition's log as LEADER EPOCH:FIRST-END, a letter for other records. Expectations:
`exit N`; `says TEXT` and `not TEXT` of the short answer and its notes; `seen KIND BROKER PLACE` (a
line that tells, BROKER `?` where nobody can say); `verdict PLACE INVARIANT VERDICT..`, one for each
life of the partition;
`election PLACE LEADER EPOCH KIND`; `lost PLACE FIRST-END STATUS`; `brokers 1 2`.
"""

import json
import quopri
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from replication.cli import main
from tests.evidence.segment_bytes import Record, batch

FOLDER = Path(__file__).parent
LEAST_SHAPES = 60
_OF_THE_TEXT = ("says ", "not ")
_DECIDED = ("seen ", "election ", "lost ", "brokers ")
_SPAN = re.compile(r"^(\d+|-):(\d+)-(\d+)([a-z]?)$")


@dataclass
class Shape:
    name: str
    why: str = ""
    args: list[str] = field(default_factory=list)
    files: dict[str, list[str]] = field(default_factory=dict)
    disks: dict[str, list[str]] = field(default_factory=dict)
    expected: list[str] = field(default_factory=list)

    @property
    def is_decided(self) -> bool:
        """Whether the right answer says something of records, leaders or replicas."""
        return any(
            e.startswith(_DECIDED) or e.endswith(("HOLDS", "VIOLATED")) for e in self.expected
        )


def read_shapes(text: str) -> Iterator[Shape]:
    for section in text.split("\n=== ")[1:]:
        head, *lines = section.rstrip("\n").split("\n")
        shape = Shape(head.strip())
        current: list[str] = []
        for line in lines:
            word, _, rest = line.partition(" ")
            if line.startswith("|e "):
                current.append(line[3:].encode("latin-1").decode("unicode_escape"))
            elif line.startswith("|"):
                current.append(line[2:])
            elif word == "why:":
                shape.why = rest
            elif word == "args:":
                shape.args = shlex.split(rest)
            elif word == "file":
                current = shape.files.setdefault(rest, [])
            elif word == "disk":
                path, _, about = rest.partition(" ")
                shape.disks[path] = [about]
            elif word == "part":
                shape.disks[list(shape.disks)[-1]].append(rest)
            elif word == "expect":
                shape.expected.append(rest)
            else:
                assert not line.strip() or line.startswith("#"), f"{shape.name}: {line}"
        yield shape


SHAPES = [s for path in sorted(FOLDER.glob("*.txt")) for s in read_shapes("\n" + path.read_text())]


def write_disk(folder: Path, about: str, parts: list[str]) -> None:
    """A log directory of the described partitions."""
    folder.mkdir(parents=True)
    told = dict(w.split("=") for w in about.split() if "=" in w)
    if "broker" in told:
        cluster = f"cluster.id={told['cluster']}\n" if "cluster" in told else ""
        meta = f"#\nversion=0\nbroker.id={told['broker']}\n{cluster}"
        (folder / "meta.properties").write_text(meta)
    if "stopped" in about.split():
        (folder / ".kafka_cleanshutdown").write_text("")
    marks = []
    for part in parts:
        name, *words = part.split()
        (folder / name).mkdir()
        log, entries = b"", []
        for word in words:
            span = _SPAN.match(word)
            if span is None:
                topic, _, number = name.rpartition("-")
                marks.append(f"{topic} {number} {word.removeprefix('hw=')}")
                continue
            number, first, end, letter = span.groups()
            entries.append(f"{number} {first}")
            for offset in range(int(first), int(end)):
                value = f"{letter}{offset}".encode()
                log += batch(offset, Record(value, value), leader_epoch=int(number))
        (folder / name / "00000000000000000000.log").write_bytes(log)
        written = "\n".join(["0", str(len(entries)), *entries, ""])
        (folder / name / "leader-epoch-checkpoint").write_text(written)
    if marks:
        text = "\n".join(["0", str(len(marks)), *marks, ""])
        (folder / "replication-offset-checkpoint").write_text(text)


def written(text: str, forms: list[str]) -> bytes:
    """The text's bytes as other machines and programs write them."""
    if "crlf" in forms:
        text = text.replace("\n", "\r\n")
    if "quoted-printable" in forms:
        return quopri.encodestring(text.encode())
    coding = next((form for form in forms if form in ("utf-16", "latin-1")), "utf-8")
    return text.encode("utf-8-sig" if "bom" in forms else coding)


def lay_out(shape: Shape, into: Path) -> None:
    for name, lines in shape.files.items():
        name, _, forms = name.partition(" as ")
        path = into / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(written("\n".join(lines) + "\n", forms.split()))
    for name, (about, *parts) in shape.disks.items():
        write_disk(into / name, about, parts)


# A quick run has every fourth.
EACH = [
    pytest.param(shape, id=shape.name, marks=[pytest.mark.slow] if n % 4 else [])
    for n, shape in enumerate(SHAPES)
]


@pytest.mark.parametrize("shape", EACH)
def test_the_answer_is_right(
    shape: Shape, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lay_out(shape, tmp_path)
    args = [arg.replace("FOLDER", str(tmp_path)) for arg in shape.args]
    text, answer, statuses = "", {}, set()
    if any(e.startswith(_OF_THE_TEXT) for e in shape.expected):
        statuses.add(main(["diagnose", str(tmp_path), *args]))
        said = capsys.readouterr()
        text = said.out + said.err
    if not text or not all(e.startswith((*_OF_THE_TEXT, "exit ")) for e in shape.expected):
        statuses.add(main(["diagnose", str(tmp_path), *args, "--format", "json"]))
        told = capsys.readouterr().out
        answer = json.loads(told) if told else {}
    [status] = statuses
    failed = [e for e in shape.expected if not _holds(e, status, text, answer)]
    assert failed == [], f"{shape.why}: {failed}\n{text}"


def _holds(expected: str, status: int, text: str, answer: dict[str, object]) -> bool:
    word, _, rest = expected.partition(" ")
    words = rest.split()
    if word == "exit":
        return status == int(rest)
    if word in ("says", "not"):
        flat = " ".join(text.split())
        return (rest in flat) == (word == "says")
    if not answer:
        return False
    rows: dict[str, list[dict[str, object]]] = answer  # type: ignore[assignment]
    if word == "brokers":
        brokers = {b["broker"] for b in answer["inventory"]["brokers"]}  # type: ignore[index]
        return brokers == {int(w) for w in words}
    place = next(w for w in words if re.search(r"-\d+$", w) and ":" not in w)
    topic, _, number = place.rpartition("-")

    def of(key: str) -> list[dict[str, object]]:
        return [r for r in rows[key] if (r["topic"], r["partition"]) == (topic, int(number))]

    if word == "seen":
        broker = None if words[1] == "?" else int(words[1])
        return any((r["kind"], r["broker"]) == (words[0], broker) for r in of("observations"))
    if word == "verdict":
        return [v["verdict"] for v in of("verdicts") if v["invariant"] == words[1]] == words[2:]
    if word == "election":
        found = of("partitions")[0]["elections"]
        told = (int(words[1]), int(words[2]), words[3])
        return told in [(e["leader"], e["leader_epoch"], e["kind"]) for e in found]  # type: ignore[attr-defined]
    assert word == "lost", expected
    first, end = (int(n) for n in words[1].split("-"))
    return (first, end, words[2]) in [
        (r["first_offset"], r["end_offset"], r["status"]) for r in of("losses")
    ]


def test_there_are_enough_and_few_are_undecided() -> None:
    assert len(SHAPES) >= LEAST_SHAPES
    assert len({s.name for s in SHAPES}) == len(SHAPES)
    assert all(s.why and s.expected for s in SHAPES)
    assert sum(not s.is_decided for s in SHAPES) * 4 <= len(SHAPES)

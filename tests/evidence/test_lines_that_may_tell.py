"""The one scan over all lines passes over noise, and over no message in whatever form it stands."""

import gzip
import html
import random
from pathlib import Path

import pytest

from benchmarks import noise_text
from replication.evidence.broker_logs.excerpts import read_excerpt
from replication.evidence.broker_logs.line_families import FAMILIES
from replication.evidence.broker_logs.lines_that_may_tell import Lines

STAMP = "[2022-05-05 10:00:01,100] INFO "
MESSAGES = sorted(
    {e.message for f in FAMILIES if f.kind for e in f.examples if "\n" not in e.message}
)
CUT = (
    b"[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating partition t-0 to local high "
    b"watermark 7"
)
# What says something by itself, wherever it is.
BY_THEMSELVES = [
    "kafka.common.errors.UnknownLeaderEpochException: Partition t-0 has a newer epoch (7) than the "
    "current leader",
    "\tat java.base/java.lang.Thread.run(Thread.java:829)",
    "kafka.common.KafkaException: Error processing data for partition t-1 offset 12",
    "Offset mismatch for partition t-0: fetched offset = 4, log end offset = 9",
    "2026-11-20 15:00:00,000: partition t-0 has unmatched checksum at offset 4; replica 1's "
    "checksum 12; replica 2's checksum 13",
    "Successfully completed leader election (UNCLEAN) for partitions t-0, t-1",
]
FOLDERS = [Path("tests/public_shapes"), Path("tests/incidents/unclean_election__2.8.2")]
FORMS = {
    "as it is": lambda m: m,
    "behind a time": lambda m: STAMP + m,
    "quoted": lambda m: f"> | {m}",
    "numbered": lambda m: f"1041: {m}",
    "behind a prompt": lambda m: f"me@host:~$ {m}",
    "behind a time in the midst of a line": lambda m: f"kafka_1 said {STAMP}{m}",
    "with entities": lambda m: html.escape(m).replace(" ", "&nbsp;"),
    "coloured": lambda m: f"\x1b[32m{m}\x1b[0m",
    "with blanks of a word processor": lambda m: m.replace(" ", "\u00a0"),
    "with a level only": lambda m: f"INFO {m}",
    "with a level in brackets only": lambda m: f"[WARN] {m}",
    "behind another line that was torn": lambda m: f"{STAMP}[Log partition=t-{STAMP}{m}",
}


@pytest.mark.parametrize("form", FORMS)
def test_no_message_is_passed_over_in_any_form(form: str) -> None:
    lines = [FORMS[form](message).encode() for message in MESSAGES]
    # Each by itself: the words of one line must not be taken for those of another.
    missed = [line for line in lines if Lines(line).with_messages(headed=True) != {0}]
    assert missed == []


@pytest.mark.parametrize("between", ["\n", "\r\n", "\n> ", "\n    ", "\n\n"])
def test_no_message_is_passed_over_wherever_it_was_wrapped(between: str) -> None:
    missed = []
    for message in MESSAGES:
        # Behind a time only the blanks of the time differ.
        for head in ("", STAMP) if between == "\n" else ("",):
            whole = head + message
            for place in (n for n, sign in enumerate(whole) if sign == " "):
                wrapped = whole[:place] + between + whole[place + 1 :]
                if 0 not in Lines(wrapped.encode()).with_messages(headed=True):
                    missed.append(wrapped)
    assert missed == []


def test_noise_is_passed_over() -> None:
    for era in ("zookeeper", "kraft"):
        text = noise_text.Writer(1, era).hour(noise_text.STARTED, 300_000)
        lines = text.encode().splitlines()
        found = Lines(text.encode()).with_messages(headed=False)
        told = [n for n, line in enumerate(lines) if b"ISR" in line]
        assert len(lines) > 1_500
        assert len(found - set(told)) < len(lines) / 50, [lines[n] for n in sorted(found)[:5]]


def read_every_line(path: Path, headed: bool, monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What is read where no line is passed over."""
    with monkeypatch.context() as patched:
        every = lambda lines, headed: range(lines._text.count(b"\n") - 1)  # noqa: E731
        patched.setattr(Lines, "that_may_tell", every)
        return list(read_excerpt(path, headed=headed))


@pytest.mark.parametrize("seed", [0, 1, 128])
def test_passing_over_lines_leaves_nothing_out(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Messages in all forms, whole, wrapped and cut, among noise, exceptions and tools' output."""
    choose = random.Random(seed)
    noise = noise_text.Writer(1, choose.choice(("zookeeper", "kraft"))).hour(0, 40_000).splitlines()
    lines = []
    for _ in range(600):
        line = choose.choice(list(FORMS.values()))(choose.choice(MESSAGES))
        line += choose.choice(("", "", " (kafka.server.ReplicaFetcherThread)", " and more", "\r"))
        for _ in range(choose.choice((0, 0, 1, 2))):
            blanks = [n for n, sign in enumerate(line) if sign == " "] or [0]
            place = choose.choice(blanks)
            line = (
                line[:place] + choose.choice(("\n", "\n> ", "\r\n\t", "\n\n")) + line[place + 1 :]
            )
        cut = choose.choice((None, None, None, choose.randrange(len(line))))
        lines += [line[:cut], *choose.sample(noise, choose.randrange(3))]
        lines += choose.sample(BY_THEMSELVES, choose.randrange(2))
    path = tmp_path / "paste"
    path.write_text("\n".join(lines))
    for headed in (True, False):
        found = list(read_excerpt(path, headed=headed))
        assert found == read_every_line(path, headed, monkeypatch)
        assert len(found) > 100


@pytest.mark.parametrize("folder", FOLDERS)
def test_in_evidence_nothing_is_left_out(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    for path in files:
        for headed in (True, False):
            found = list(read_excerpt(path, headed=headed))
            assert found == read_every_line(path, headed, monkeypatch), path


def test_a_line_that_is_no_text_is_left_out_and_counted(tmp_path: Path) -> None:
    text = b"caf\xe9\n" + b"x" * (1 << 20) + b"\n> " + CUT + b"\r\n"
    (tmp_path / "paste").write_bytes(text)
    (fact,) = read_excerpt(tmp_path / "paste", headed=True)
    assert (fact.kind, fact.line, fact.topic) == ("truncation_reason", 3, "t")


def test_of_a_torn_line_the_whole_piece_is_read_and_named_by_its_number(tmp_path: Path) -> None:
    text = b"noise\n" + STAMP.encode() + b"[Log partition=t-" + STAMP.encode() + CUT
    (tmp_path / "paste").write_bytes(text + b" (kafka.server.ReplicaFetcherThread)\n")
    (fact,) = read_excerpt(tmp_path / "paste", headed=True)
    assert (fact.kind, fact.line, fact.broker) == ("truncation_reason", 2, 2)


def test_of_a_packed_file_that_breaks_off_whole_lines_are_read(tmp_path: Path) -> None:
    packed = gzip.compress(CUT + b"\n" + bytes(range(256)) * 4_000)
    (tmp_path / "paste.gz").write_bytes(packed[: len(packed) // 2])
    facts = list(read_excerpt(tmp_path / "paste.gz", headed=True))
    assert [(f.kind, f.line) for f in facts] == [("truncation_reason", 1)]

"""The small text files beside the segments: as brokers of each version wrote them, and damaged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from replication.evidence.log_directories.small_files import (
    LARGEST_FILE,
    CleanShutdown,
    MetaProperties,
    QuorumState,
    read_clean_shutdown,
    read_leader_epoch_checkpoint,
    read_meta_properties,
    read_offset_checkpoint,
    read_partition_metadata,
    read_quorum_state,
)
from replication.evidence.unreadable import Unreadable

READERS: list[Callable[[Path], Any]] = [
    read_offset_checkpoint,
    read_leader_epoch_checkpoint,
    read_partition_metadata,
    read_meta_properties,
    read_clean_shutdown,
    read_quorum_state,
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "file"


def written(file: Path, content: str | bytes) -> Path:
    file.write_bytes(content if isinstance(content, bytes) else content.encode())
    return file


@pytest.mark.parametrize(
    ("content", "entries"),
    [
        ("", {}),
        ("0\n0\n", {}),
        ("0\n1\nt 0 23\n", {("t", 0): 23}),
        (
            "0\n3\nt 0 23\nt.x_y-1 12 0\n__consumer_offsets 49 9223372036854775807\n",
            {("t", 0): 23, ("t.x_y-1", 12): 0, ("__consumer_offsets", 49): 2**63 - 1},
        ),
        ("0\r\n1\r\nt 0 23\r\n", {("t", 0): 23}),
    ],
)
def test_offset_checkpoints(file: Path, content: str, entries: dict[tuple[str, int], int]) -> None:
    assert read_offset_checkpoint(written(file, content)) == entries


@pytest.mark.parametrize(
    ("content", "where", "reason"),
    [
        ("1\n0\n", "line 1", "not understood: '1'"),
        ("\n", "line 1", "not understood: ''"),
        ("0\n", "line 2", "not understood: ''"),
        ("0\nx\n", "line 2", "not understood: 'x'"),
        ("0\n-1\n", "line 2", "not understood: '-1'"),
        ("0\n2\nt 0 23\n", "line 2", "it announces 2 entries and holds 1"),
        ("0\n1\nt 0 23\nt 1 5\n", "line 2", "it announces 1 entries and holds 2"),
        ("0\n1\nt 0\n", "line 3", "not understood: 't 0'"),
        ("0\n1\nt 0 23", "line 3", "the file ends within this line"),
        ("0\n1\nt 0 2 3\n", "line 3", "not understood: 't 0 2 3'"),
        ("0\n1\nt 0 -1\n", "line 3", "not understood: 't 0 -1'"),
        ("0\n1\nt x 1\n", "line 3", "not understood: 't x 1'"),
        ("0\n1\nt 0 ²\n", "line 3", "not understood: 't 0 ²'"),
        ("0\n2\nt 0 1\nt 0 2\n", "line 4", "not understood: 't 0 2'"),
        (b"0\n1\nt 0 \xff\n", "byte 8", "no text"),
        (bytes(9), "byte 0", "zero bytes, as a crash of the machine leaves them"),
        ("x" * 500, "line 1", f"not understood: '{'x' * 60}'"),
    ],
)
def test_what_is_no_offset_checkpoint(
    file: Path, content: str | bytes, where: str, reason: str
) -> None:
    answer = read_offset_checkpoint(written(file, content))
    assert answer == Unreadable(str(file), where, reason)


@pytest.mark.parametrize(
    ("content", "entries"),
    [
        ("", []),
        ("0\n0\n", []),
        ("0\n4\n0 0\n4 8\n7 17\n9 23\n", [(0, 0), (4, 8), (7, 17), (9, 23)]),
    ],
)
def test_leader_epoch_checkpoints(file: Path, content: str, entries: list[tuple[int, int]]) -> None:
    assert read_leader_epoch_checkpoint(written(file, content)) == entries


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("0\n1\n0\n", "line 3"),
        ("0\n1\n-1 0\n", "line 3"),
        ("0\n2\n0 0\n", "line 2"),
        ("0\n1\nt 0 0\n", "line 3"),
    ],
)
def test_what_is_no_leader_epoch_checkpoint(file: Path, content: str, where: str) -> None:
    answer = read_leader_epoch_checkpoint(written(file, content))
    assert isinstance(answer, Unreadable)
    assert (answer.path, answer.where) == (str(file), where)


@pytest.mark.parametrize("end", ["", "\n", "\r\n"])
def test_partition_metadata(file: Path, end: str) -> None:
    content = f"version: 0\ntopic_id: 2__hL4ioTz2vL9G9ufTZnQ{end}"
    assert read_partition_metadata(written(file, content)) == "2__hL4ioTz2vL9G9ufTZnQ"


@pytest.mark.parametrize(
    ("content", "where"),
    [
        ("", "line 1"),
        ("version: 1\ntopic_id: 2__hL4ioTz2vL9G9ufTZnQ", "line 1"),
        ("version: 0\ntopic_id: short", "line 2"),
        ("version: 0\n", "file"),
        ("version: 0\nname: 2__hL4ioTz2vL9G9ufTZnQ", "line 2"),
    ],
)
def test_what_is_no_partition_metadata(file: Path, content: str, where: str) -> None:
    answer = read_partition_metadata(written(file, content))
    assert isinstance(answer, Unreadable)
    assert answer.where == where


@pytest.mark.parametrize(
    ("content", "properties"),
    [
        (
            "#\n#Fri Nov 20 15:42:44 UTC 2026\nbroker.id=3\nversion=0\n",
            MetaProperties(None, 3, None, 0),
        ),
        (
            "#\nbroker.id=0\ncluster.id=XR8ktqHdTmOw0XmDlDJSvg\nversion=0\n",
            MetaProperties("XR8ktqHdTmOw0XmDlDJSvg", 0, None, 0),
        ),
        (
            "node.id=1\ndirectory.id=rJY4t2iANEGOtpURFow0HQ\nversion=1\n"
            "cluster.id=XR8ktqHdTmOw0XmDlDJSvg\n",
            MetaProperties("XR8ktqHdTmOw0XmDlDJSvg", 1, "rJY4t2iANEGOtpURFow0HQ", 1),
        ),
        (
            "!old\n broker.id = 12 \r\ncluster.id=a\\:b\\u0041\r\nversion = 0\r\nother=1\r\n",
            MetaProperties("a:bA", 12, None, 0),
        ),
        ("version=0\ncluster.id=\n", MetaProperties(None, None, None, 0)),
    ],
)
def test_meta_properties(file: Path, content: str, properties: MetaProperties) -> None:
    assert read_meta_properties(written(file, content)) == properties


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        ("", "its version is None, known are 0 and 1"),
        ("broker.id=1\n", "its version is None, known are 0 and 1"),
        ("version=2\nbroker.id=1\n", "its version is '2', known are 0 and 1"),
        ("version=0\nbroker.id=one\n", "its broker.id is 'one'"),
        ("version=1\nnode.id=-1\n", "its node.id is '-1'"),
    ],
)
def test_what_is_no_meta_properties(file: Path, content: str, reason: str) -> None:
    answer = read_meta_properties(written(file, content))
    assert answer == Unreadable(str(file), "file", reason)


@pytest.mark.parametrize(
    ("content", "broker_epoch"),
    [("", None), ('{"version":0,"brokerEpoch":32}', 32), ('{"version":0,"brokerEpoch":-1}', None)],
)
def test_clean_shutdown(file: Path, content: str, broker_epoch: int | None) -> None:
    assert read_clean_shutdown(written(file, content)) == CleanShutdown(broker_epoch)


@pytest.mark.parametrize("content", ["x", "[]", '{"brokerEpoch":"1"}', '{"brokerEpoch":true}'])
def test_what_is_no_clean_shutdown(file: Path, content: str) -> None:
    assert isinstance(read_clean_shutdown(written(file, content)), Unreadable)


def test_quorum_state(file: Path) -> None:
    content = (
        '{"clusterId":"","leaderId":100,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        '"currentVoters":[{"voterId":100},{"voterId":101}],"data_version":0}'
    )
    assert read_quorum_state(written(file, content)) == QuorumState(100, 1, None, (100, 101))
    newer = '{"leaderId":-1,"leaderEpoch":7,"votedId":2,"votedDirectoryId":"x","data_version":1}'
    assert read_quorum_state(written(file, newer)) == QuorumState(None, 7, 2, ())


@pytest.mark.parametrize(
    "content",
    [
        "",
        "{}",
        '{"leaderEpoch":1.5}',
        '{"leaderEpoch":1,"currentVoters":[1]}',
        '{"leaderEpoch":1,"currentVoters":5}',
        "[" * 100_000,
    ],
)
def test_what_is_no_quorum_state(file: Path, content: str) -> None:
    assert isinstance(read_quorum_state(written(file, content)), Unreadable)


@pytest.mark.parametrize("reader", READERS)
def test_what_cannot_be_read(tmp_path: Path, reader: Callable[[Path], Any]) -> None:
    missing = tmp_path / "missing"
    assert reader(missing) == Unreadable(str(missing), "file", "No such file or directory")
    huge = tmp_path / "huge"
    with huge.open("wb") as stream:
        stream.truncate(LARGEST_FILE + 1)
    assert reader(huge) == Unreadable(str(huge), "file", "larger than 16 MB")


@pytest.mark.parametrize("reader", READERS)
@given(
    content=st.one_of(
        st.binary(max_size=60),
        st.text('01tx: =-{}[]",\n\\u', max_size=60).map(str.encode),
    )
)
def test_any_bytes_never_raise(
    tmp_path_factory: pytest.TempPathFactory, reader: Callable[[Path], Any], content: bytes
) -> None:
    reader(written(tmp_path_factory.getbasetemp() / "any", content))

"""Files packed in any way and archives: what is in them is read, and nothing else happens."""

import bz2
import gzip
import io
import lzma
import os
import tarfile
import time
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from replication.evidence.collecting.archives import Limits, Unpacked, archive_kind
from replication.evidence.opening import READ_ERRORS, lines_of, open_unpacked

TEXT = "".join(f"line {n} with enough plain words to tell what it is; ä€𝄞\n" for n in range(4000))
PLAIN = TEXT.encode()
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "zstandard": zstandard.compress,
}


@pytest.mark.parametrize("packer", PACKERS)
def test_a_packed_file_is_its_content_and_one_that_is_cut_says_so(
    packer: str, tmp_path: Path
) -> None:
    path = tmp_path / "server.log.1"
    packed = PACKERS[packer](PLAIN)
    path.write_bytes(packed + PACKERS[packer](b"a second member\n"))
    with open_unpacked(path) as stream:
        assert stream.read() == PLAIN + b"a second member\n"
    path.write_bytes(packed[: len(packed) // 2])
    with pytest.raises(READ_ERRORS), open_unpacked(path) as stream:
        stream.read()
    assert b"".join(lines_of(path)) == PLAIN[: len(b"".join(lines_of(path)))]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_text_in_another_encoding_comes_out_as_utf_8(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    for packed in (TEXT.encode(encoding), gzip.compress(TEXT.encode(encoding))):
        path.write_bytes(packed)
        with open_unpacked(path) as stream:
            assert stream.read() == PLAIN


def test_what_unpacks_to_far_more_than_text_would_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("replication.evidence.opening.UNSUSPICIOUS_BYTES", 1 << 20)
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(b"0" * (5 << 20)))
    with open_unpacked(path) as stream, pytest.raises(OSError, match="bomb"):
        list(iter(lambda: stream.read(1 << 16), b""))


def tar_of(members: dict[str, bytes], mode: str = "w") -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode=mode) as tar:  # type: ignore[call-overload]
        for name, content in members.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return file.getvalue()


def zip_of(members: dict[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members.items():
            zipped.writestr(name, content)
    return file.getvalue()


ARCHIVES: dict[str, Callable[[dict[str, bytes]], bytes]] = {
    "tar": tar_of,
    "tar.gz": lambda m: tar_of(m, "w:gz"),
    "tar.bz2": lambda m: tar_of(m, "w:bz2"),
    "tar.xz": lambda m: tar_of(m, "w:xz"),
    "tar.zst": lambda m: zstandard.compress(tar_of(m)),
    "zip": zip_of,
}


def opened(path: Path, into: Path, limits: Limits | None = None) -> Unpacked:
    into.mkdir()
    unpacked = Unpacked(into, limits or Limits())
    assert unpacked.take(path) is not None
    return unpacked


def contents(folder: Path) -> dict[str, bytes]:
    files = [p for p in sorted(folder.rglob("*")) if p.is_file()]
    return {str(p.relative_to(folder)): p.read_bytes() for p in files}


@pytest.mark.parametrize("kind", ARCHIVES)
def test_archives_one_within_another_are_opened_as_folders(kind: str, tmp_path: Path) -> None:
    members = {"a/server.log": PLAIN, "meta.properties": b"broker.id=1\n"}
    for inner in ARCHIVES:
        path = tmp_path / f"all-{inner}"
        path.write_bytes(ARCHIVES[kind]({f"x/broker.{inner}": ARCHIVES[inner](members)}))
        unpacked = opened(path, tmp_path / inner)
        prefix = f"0/x/broker.{inner}"
        assert contents(unpacked.into) == {f"{prefix}/{k}": v for k, v in members.items()}
        real = unpacked.into / prefix / "a" / "server.log"
        assert unpacked.place(real) == path / f"x/broker.{inner}/a/server.log"
        assert unpacked.real(str(unpacked.place(real))) == real


NAMES = ["../up", "/abs/olute", "a/../../../up", "..\\up", "C:\\x\\y", ".", "n\0ul", "a//b/./c"]


@pytest.mark.parametrize("kind", ["tar", "zip"])
def test_no_member_leaves_the_folder(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "evil"
    path.write_bytes(ARCHIVES[kind]({name: b"x" for name in NAMES if kind == "tar" or name != "."}))
    before = set(tmp_path.rglob("*"))
    unpacked = opened(path, tmp_path / "into")
    new = set(tmp_path.rglob("*")) - before - {tmp_path / "into"}
    assert all(unpacked.into in p.parents for p in new)
    assert len(contents(unpacked.into)) >= 4


def test_links_are_not_followed_and_said(tmp_path: Path) -> None:
    path = tmp_path / "links.tar"
    with tarfile.open(path, "w") as tar:
        for name, kind in (("soft", tarfile.SYMTYPE), ("hard", tarfile.LNKTYPE)):
            member = tarfile.TarInfo(name)
            member.type, member.linkname = kind, "/etc/passwd"
            tar.addfile(member)
    unpacked = opened(path, tmp_path / "into")
    assert contents(unpacked.into) == {}
    assert ["a link to /etc/passwd" in u.reason for u in unpacked.left_out] == [True, True]


def test_a_file_where_a_folder_should_be_costs_neither(tmp_path: Path) -> None:
    path = tmp_path / "both.tar"
    path.write_bytes(tar_of({"a": b"file", "a/b": b"below", "c/d": b"x", "c": b"late"}))
    assert sorted(contents(opened(path, tmp_path / "into").into).values()) == sorted(
        (b"file", b"below", b"x", b"late")
    )


def test_bombs_are_refused(tmp_path: Path) -> None:
    wide = tmp_path / "wide.zip"
    wide.write_bytes(zip_of({f"{n}": b"0" * (1 << 20) for n in range(20)}))
    unpacked = opened(wide, tmp_path / "1", Limits(total_bytes=4 << 20))
    assert contents(unpacked.into) == {}
    assert [u.reason.startswith("refused:") for u in unpacked.unreadable] == [True]
    many = tmp_path / "many.tar"
    many.write_bytes(tar_of({f"{n}": b"" for n in range(50)}))
    assert opened(many, tmp_path / "2", Limits(files=10)).unreadable[0].reason.startswith("refused")
    deep = b"end"
    for _ in range(6):
        deep = tar_of({"next": deep})
    path = tmp_path / "deep.tar"
    path.write_bytes(deep)
    assert "deep" in opened(path, tmp_path / "3").unreadable[0].reason


def test_what_is_no_archive_is_none(tmp_path: Path) -> None:
    for content in (b"", PLAIN, b"\0" * 2048, os.urandom(4096), gzip.compress(PLAIN)):
        (tmp_path / "x").write_bytes(content)
        assert archive_kind(tmp_path / "x") is None
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(tar_of({"a": os.urandom(200_000), "b": b"x"}, "w:gz")[:100_000])
    assert "breaks off" in opened(cut, tmp_path / "into").unreadable[0].reason


def test_a_small_file_that_was_changed_is_read_anew(tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    told = []
    for text, age in (("before", 20), ("behind", 10), ("packed", 5)):
        path.write_bytes(gzip.compress(text.encode()) if text == "packed" else text.encode())
        os.utime(path, ns=(0, time.time_ns() - age * 1_000_000_000))
        for _ in range(2):
            with open_unpacked(path) as stream:
                told.append(stream.read().decode())
    # Written twice within one time stamp.
    now = time.time_ns()
    for text in ("first!", "second"):
        path.write_bytes(text.encode())
        os.utime(path, ns=(0, now))
        with open_unpacked(path) as stream:
            told.append(stream.read().decode())
    assert told == ["before"] * 2 + ["behind"] * 2 + ["packed"] * 2 + ["first!", "second"]

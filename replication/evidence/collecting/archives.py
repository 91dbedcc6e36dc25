"""Opens archives in place: tar and zip, packed in any way and one within another.

What an archive holds is written below a folder of this run's own and read there; everywhere else it
is named by its place in the archive, as if that were a folder. No member can leave that folder, no
link is followed, and an archive that would unpack to more than LIMITS say is refused.
"""

import os
import shutil
import struct
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import IO

from replication.evidence.collecting.exports import laid_out
from replication.evidence.opening import READ_ERRORS, open_unpacked
from replication.evidence.unreadable import Unreadable

_TAR_BLOCK = 512
_PIECE = 1 << 20
# Brokers preallocate indexes with megabytes of zeros, and nothing is read from them.
_PASSED_OVER = 1 << 40
_LEFT_OUT = (".index", ".timeindex", ".txnindex")
_FOREIGN = {
    b"7z\xbc\xaf\x27\x1c": "a 7-Zip archive",
    b"Rar!\x1a\x07": "a RAR archive",
}
# A partition's folder is named after its topic, 249 bytes, and more.
_LONGEST_NAME, _LONGEST_PATH = 255, 3_000
_EXTENSIONS = (
    tarfile.XHDTYPE, tarfile.XGLTYPE, tarfile.SOLARIS_XHDTYPE, tarfile.GNUTYPE_LONGNAME,
    tarfile.GNUTYPE_LONGLINK,
)  # fmt: skip
_LARGEST_HEADER = 1 << 20
# What the libraries raise at damage, names that are no text among it.
_DAMAGED = (
    *READ_ERRORS, tarfile.TarError, zipfile.BadZipFile, NotImplementedError, ValueError, IndexError,
    struct.error, OverflowError,
)  # fmt: skip
_PROGRAMS = (".jar", ".war", ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".whl", ".apk")


@dataclass(frozen=True, slots=True)
class Limits:
    """Of all archives of one run together: bytes written, files, members of any kind, and how deep
    one may lie within another. spare_bytes: what must stay free on the disk."""

    total_bytes: int = 200 << 30
    files: int = 500_000
    members: int = 5_000_000
    depth: int = 4
    spare_bytes: int = 1 << 30


LIMITS = Limits()


class _Refused(Exception):
    """An archive is beyond the limits; the text says which."""


@dataclass(slots=True)
class Unpacked:
    """What archives were unpacked to. into: the folder of this run. folders: per archive that was
    found, where its members lie."""

    into: Path
    limits: Limits = LIMITS
    folders: dict[Path, Path] = field(default_factory=dict)
    unreadable: list[Unreadable] = field(default_factory=list)
    left_out: list[Unreadable] = field(default_factory=list)
    written: int = 0
    files: int = 0
    members: int = 0

    def shown(self, text: str) -> str:
        """The text with places in archives named as a user knows them."""
        if str(self.into) in text:
            for archive, folder in reversed(self.folders.items()):
                text = text.replace(f"{folder}/", f"{archive}/").replace(str(folder), str(archive))
        return text

    def place(self, path: Path) -> Path:
        """A path as a user knows it."""
        return Path(self.shown(str(path)))

    def real(self, path: str) -> Path:
        """Where the file lies that a user knows by that path."""
        for archive, folder in self.folders.items():
            if path == str(archive):
                return self.real(str(folder))
            if path.startswith(f"{archive}/"):
                return self.real(str(folder)) / path[len(str(archive)) + 1 :]
        return Path(path)

    def receive(self, stream: IO[bytes], name: str) -> Path:
        """Writes what comes in to a file of this run, which a user knows by that name."""
        file = self.into / str(len(self.folders))
        self.folders[Path(name)] = file
        try:
            self._write(stream, file)
        except _Refused as error:
            self.unreadable.append(Unreadable(name, "file", f"refused: {error}"))
        return file

    def take(self, archive: Path) -> Path | None:
        """Unpacks an archive, or an export of several brokers' logs, that was found; the folder of
        its members, None where it is neither."""
        kind = archive_kind(archive)
        folder = self.into / str(len(self.folders))
        if kind is None:
            # What a shipper sent of several brokers is a folder of their logs.
            unread = laid_out(archive, folder)
            if unread is None:
                shutil.rmtree(folder, ignore_errors=True)
                return None
            self.unreadable += unread
            self.folders[archive] = folder
            return folder
        self.folders[archive] = folder
        self._unpack(archive, kind, folder, 1)
        return folder

    def _unpack(self, archive: Path, kind: str, folder: Path, depth: int) -> None:
        folder.mkdir(parents=True)
        members = _tar_members if kind == "tar" else _zip_members
        before = self.written
        try:
            for member in members(archive):
                self.members += 1
                if self.members > self.limits.members:
                    raise _Refused(f"more than {self.limits.members} members in archives")
                if member is not None:
                    self._take_member(archive, folder, member)
        except _Refused as error:
            self.written = before
            shutil.rmtree(folder)
            folder.mkdir()
            self.unreadable.append(Unreadable(str(archive), "file", f"refused: {error}"))
            return
        except _DAMAGED as error:
            told = f"the archive breaks off or is damaged: {error}"
            self.unreadable.append(Unreadable(str(archive), "file", told))
        for path in sorted(p for p in folder.rglob("*") if p.is_file()):
            inner = archive_kind(path)
            if inner is None:
                continue
            if depth >= self.limits.depth:
                told = f"refused: archives within archives, more than {self.limits.depth} deep"
                self.unreadable.append(Unreadable(str(path), "file", told))
                path.unlink()
                continue
            packed = path.rename(path.with_name(path.name + "\x01packed"))
            self._unpack(packed, inner, path, depth + 1)
            self._rename(str(packed), str(path))
            packed.unlink()

    def _take_member(self, archive: Path, folder: Path, member: "_Member") -> None:
        target = None if member.left_out else _inside(folder, member.name)
        if target is None:
            told = member.left_out or "its name leads nowhere, or is too long"
            self.left_out.append(Unreadable(f"{archive}/{member.name}", "file", told))
        elif not target.name.endswith(_LEFT_OUT):
            try:
                with member.open() as stream:
                    self._write(stream, target)
            except _DAMAGED as error:
                if not member.stands_alone:
                    raise
                told = f"this member of the archive is damaged: {error}"
                self.unreadable.append(Unreadable(f"{archive}/{member.name}", "file", told))

    def _rename(self, old: str, new: str) -> None:
        """An archive within one takes its own name back, as a folder."""
        for told in (self.unreadable, self.left_out):
            for number, each in enumerate(told):
                if each.path.startswith(old):
                    path = new + each.path[len(old) :]
                    told[number] = Unreadable(path, each.where, each.reason)

    def _write(self, stream: IO[bytes], target: Path) -> None:
        self.files += 1
        if self.files > self.limits.files:
            raise _Refused(f"more than {self.limits.files} files in archives")
        free = shutil.disk_usage(self.into).free - self.limits.spare_bytes
        while target.is_dir() or any(p.is_file() for p in _above(target, self.into)):
            # A file and a folder of one name: another name for the later one.
            target = target.with_name(target.name + "~") if target.is_dir() else _beside(target)
        target.parent.mkdir(parents=True, exist_ok=True)
        with target.open("wb") as file:
            while piece := stream.read(_PIECE):
                self.written += len(piece)
                free -= len(piece)
                if self.written > self.limits.total_bytes:
                    limit = self.limits.total_bytes >> 20
                    raise _Refused(f"its members are larger than {limit} MB together")
                if free < 0:
                    raise _Refused("the disk has no room for its members")
                file.write(piece)


def _above(target: Path, top: Path) -> list[Path]:
    return [p for p in target.parents if top in p.parents]


def _beside(target: Path) -> Path:
    """The target with the first folder above it renamed that is a file."""
    blocking = next(p for p in reversed(target.parents) if p.is_file())
    return blocking.with_name(blocking.name + "~") / target.relative_to(blocking)


def _inside(folder: Path, name: str) -> Path | None:
    """The place of a member below the folder, whatever its name says."""
    parts = [p for p in PurePosixPath(name.replace("\\", "/")).parts if p not in ("/", "..", ".")]
    parts = [p.replace("\0", "").replace(":", "_") for p in parts]
    if not parts or not all(parts):
        return None
    sizes = [len(os.fsencode(part)) for part in parts]
    # As much as a file system takes, with room for the folder of this run.
    long = max(sizes) > _LONGEST_NAME or sum(sizes) + len(sizes) > _LONGEST_PATH
    return None if long else folder.joinpath(*parts)


@dataclass(frozen=True, slots=True)
class _Member:
    """A member that is no folder. left_out: why it is not read. stands_alone: damage of it leaves
    the members behind it readable."""

    name: str
    open: Callable[[], IO[bytes]]
    left_out: str | None = None
    stands_alone: bool = False


class _BoundedHeader(tarfile.TarInfo):
    """A tar header that is not read into memory where its own data would be gigabytes."""

    @classmethod
    def frombuf(cls, buf: bytes | bytearray, encoding: str, errors: str) -> "_BoundedHeader":
        found = super().frombuf(buf, encoding, errors)
        if found.type in _EXTENSIONS and found.size > _LARGEST_HEADER:
            raise tarfile.ReadError(f"a header of {found.size} bytes")
        return found


def _tar_members(archive: Path) -> Iterator[_Member | None]:
    """The members; None for a folder."""
    with (
        open_unpacked(archive, _PASSED_OVER) as packed,
        tarfile.open(fileobj=packed, mode="r|", tarinfo=_BoundedHeader) as tar,
    ):
        for member in tar:
            # The library keeps them all, and an archive may hold millions.
            tar.members = []  # type: ignore[attr-defined]
            if member.isdir():
                yield None
                continue
            why = None
            if member.issym() or member.islnk():
                why = f"a link to {member.linkname}; links are not followed"
            elif not member.isfile():
                why = "no file (a device or a pipe)"
            yield _Member(member.name, partial(_extracted, tar, member), why)


def _extracted(tar: tarfile.TarFile, member: tarfile.TarInfo) -> IO[bytes]:
    stream = tar.extractfile(member)
    if stream is None:
        raise tarfile.ReadError("no file")
    return stream


def _zip_members(archive: Path) -> Iterator[_Member | None]:
    """The members; None for a folder."""
    with zipfile.ZipFile(archive) as zipped:
        for member in zipped.infolist():
            if not member.filename or member.is_dir():
                yield None
                continue
            locked = member.flag_bits & 1
            why = "it is encrypted: unpack it with its password first" if locked else None
            yield _Member(member.filename, partial(zipped.open, member), why, stands_alone=True)


def archive_kind(path: Path) -> str | None:
    """ "tar" (packed in any way) or "zip", by content; None for what is neither."""
    try:
        with path.open("rb") as raw:
            head = raw.read(4)
        if head == b"PK\x03\x04":
            return None if path.suffix.lower() in _PROGRAMS else "zip"
        with open_unpacked(path) as stream:
            return "tar" if _is_tar_header(stream.read(_TAR_BLOCK)) else None
    except READ_ERRORS:
        return None


def _is_tar_header(block: bytes) -> bool:
    """Whether a block has the check sum of a tar member's header."""
    if len(block) < _TAR_BLOCK:
        return False
    told = block[148:156].strip(b" \0")
    try:
        return bool(told) and int(told, 8) == sum(block) - sum(block[148:156]) + 8 * 32
    except ValueError:
        return False


def foreign_archive(head: bytes) -> str | None:
    """What kind of archive begins so that cannot be opened here."""
    return next((what for magic, what in _FOREIGN.items() if head.startswith(magic)), None)

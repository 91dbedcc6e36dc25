"""Opens archives in place: tar and zip, packed in any way and one within another.

What an archive holds is written below a folder of this run's own and read there; everywhere else it
is named by its place in the archive, as if that were a folder. No member can leave that folder, no
link is followed, and an archive that would unpack to more than LIMITS say is refused.
"""

import shutil
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO

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
_PROGRAMS = (".jar", ".war", ".docx", ".xlsx", ".pptx", ".odt", ".ods", ".whl", ".apk")


@dataclass(frozen=True, slots=True)
class Limits:
    """Of all archives of one run together: bytes written, files, and how deep one may lie within
    another. spare_bytes: what must stay free on the disk."""

    total_bytes: int = 200 << 30
    files: int = 500_000
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

    def shown(self, text: str) -> str:
        """The text with places in archives named as a user knows them."""
        if str(self.into) in text:
            for archive, folder in self.folders.items():
                text = text.replace(f"{folder}/", f"{archive}/").replace(str(folder), str(archive))
        return text

    def place(self, path: Path) -> Path:
        """A path as a user knows it."""
        return Path(self.shown(str(path)))

    def real(self, path: str) -> Path:
        """Where the file lies that a user knows by that path."""
        for archive, folder in self.folders.items():
            if path.startswith(f"{archive}/"):
                return folder / path[len(str(archive)) + 1 :]
        return Path(path)

    def take(self, archive: Path) -> Path | None:
        """Unpacks an archive that was found; the folder of its members, None where it is none."""
        kind = archive_kind(archive)
        if kind is None:
            return None
        folder = self.into / str(len(self.folders))
        self.folders[archive] = folder
        self._unpack(archive, kind, folder, 1)
        return folder

    def _unpack(self, archive: Path, kind: str, folder: Path, depth: int) -> None:
        folder.mkdir(parents=True)
        members = _tar_members if kind == "tar" else _zip_members
        before = self.written
        try:
            for name, why, stream in members(archive):
                target = _inside(folder, name)
                if why or stream is None or target is None:
                    told = why or "its name leads nowhere"
                    self.left_out.append(Unreadable(f"{archive}/{name}", "file", told))
                elif not target.name.endswith(_LEFT_OUT):
                    self._write(stream, target)
        except _Refused as error:
            self.written = before
            shutil.rmtree(folder)
            folder.mkdir()
            self.unreadable.append(Unreadable(str(archive), "file", f"refused: {error}"))
            return
        except (*READ_ERRORS, tarfile.TarError, zipfile.BadZipFile, NotImplementedError) as error:
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
    parts = [p.replace("\0", "").replace(":", "_")[:200] for p in parts]
    return folder.joinpath(*parts) if parts and all(parts) else None


def _tar_members(archive: Path) -> Iterator[tuple[str, str | None, IO[bytes] | None]]:
    with (
        open_unpacked(archive, _PASSED_OVER) as packed,
        tarfile.open(fileobj=packed, mode="r|") as tar,
    ):
        for member in tar:
            if member.isdir():
                continue
            if member.issym() or member.islnk():
                yield member.name, f"a link to {member.linkname}; links are not followed", None
            elif not member.isfile():
                yield member.name, "no file (a device or a pipe)", None
            else:
                yield member.name, None, tar.extractfile(member)


def _zip_members(archive: Path) -> Iterator[tuple[str, str | None, IO[bytes] | None]]:
    with zipfile.ZipFile(archive) as zipped:
        for member in zipped.infolist():
            if member.is_dir():
                continue
            if member.flag_bits & 1:
                yield member.filename, "it is encrypted: unpack it with its password first", None
                continue
            with zipped.open(member) as stream:
                yield member.filename, None, stream


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

"""Reads every byte of the tables' files: what is damaged is noticed though no query reads it."""

from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow.parquet as pq

from replication import places
from replication.places import Place
from replication.spark import checksums
from replication.spark.log_files import (
    DamagedError,
    added,
    check_bytes,
    check_files,
    opened,
    undamaged,
)
from replication.spark.tables import Store, TablesError

BLOCK = 1 << 20


def read_whole(store: Store, tables: Iterable[str]) -> tuple[int, int]:
    """Reads the files of the newest version of these tables and those of their logs, as far as
    there are such tables; returns how many files and bytes that were.

    Each is held against the checksums that lie beside it, of all bytes; where there are none, each
    page of a Parquet file against its own. On a store it is the store's file system that looks.
    Raises TablesError, which names the file and the remedy.
    """
    files = size = 0
    try:
        for table in tables:
            folder = store.folder / table
            if not (folder / "_delta_log").is_dir():
                continue
            for path in _files_of(store, folder):
                files, size = files + 1, size + path.stat().st_size
                _read(path)
    except DamagedError as error:
        raise TablesError(str(error)) from None
    return files, size


def _files_of(store: Store, folder: Place) -> Iterator[Place]:
    log = folder / "_delta_log"
    yield from sorted(p for p in log.glob("*") if p.name.endswith((".json", ".parquet")))
    found = opened(folder)
    if found is not None:
        check_files(folder)
        yield from (folder / str(add["path"]) for add in added(found))
        return
    for uri in store.spark.read.format("delta").load(str(folder)).inputFiles():
        yield places.folder(uri)


def _read(path: Place) -> None:
    if not isinstance(path, Path):
        try:
            with path.open("rb") as stream:
                while stream.read(BLOCK):
                    pass
        except OSError as error:
            raise DamagedError(path, f"cannot be read ({error.strerror})") from error
        return
    check_bytes(path)
    if checksums.beside(path).exists() or path.suffix != ".parquet":
        return
    with undamaged(path), pq.ParquetFile(path, page_checksum_verification=True) as file:
        for _ in file.iter_batches():
            pass

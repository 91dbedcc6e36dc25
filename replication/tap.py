"""An acknowledgement log beside a producer of one's own: the standard library and this file alone.

    from replication.tap import AcknowledgementLog

    log = AcknowledgementLog("acks", client="orders-1", acks="all")
    producer.produce("orders", value, key=key, on_delivery=log)

`log` is a delivery callback of confluent-kafka (librdkafka). It writes one line for each record of
which the client was told something, in the form that `replication-analyzer diagnose` reads
(docs/contract.md, "Acknowledgement log"). The callback takes the line down; a thread writes whole
lines, twenty times a second, so that a killed client loses less than a second of them and its last
line is whole or is not counted. A log that cannot be written never stops the producer: what was not
written is counted in `dropped` and said once on stderr.
"""

import atexit
import os
import re
import sys
import threading
import time
import zlib
from collections.abc import Callable
from json.encoder import encode_basestring_ascii as quoted
from pathlib import Path
from typing import Any

# Short, so that no delivery callback waits long for the lines of the last while to be put together.
FLUSH_SECONDS = 0.05
# So many lines wait for a disk that does not take them; what comes on top is dropped.
MOST_WAITING = 1_000_000
_WORD = re.compile(rb"[\w-]+")
# Errors with which the record was never appended, whatever was tried before. After every other one
# it may be in the log: an earlier attempt may have been appended.
NEVER_APPENDED = frozenset(
    {
        *("MSG_SIZE_TOO_LARGE", "INVALID_RECORD", "TOPIC_AUTHORIZATION_FAILED"),
        *("_UNKNOWN_TOPIC", "_UNKNOWN_PARTITION", "_KEY_SERIALIZATION", "_VALUE_SERIALIZATION"),
    }
)
DeliveryCallback = Callable[[Any, Any], Any]


class AcknowledgementLog:
    """The delivery callback of one producer, and the files that it keeps in `folder`.

    client: its name in the log. acks: that of the producer's settings ("0", "1", "all").
    payload_id: what names each record and is unique: "key", "value" (the first word of the value),
    a function from the delivered message to such a text together with `found_in` (where in the
    record it is: "key", "value", "header:NAME"; the library tells a callback no headers), or None
    for the offset alone.
    sample: the share of the keys whose records are noted, from 0 to 1; always the same keys, by
    the CRC-32 of the key (without a key: of the value). file_bytes: a file of that size is followed
    by a new one. keep_files: so many of this log's own files are kept, all where None. Each process
    needs a log of its own. Raises ValueError, and OSError where `folder` cannot be written to.
    """

    def __init__(
        self,
        folder: str | Path,
        *,
        client: str,
        acks: str = "all",
        payload_id: str | Callable[[Any], str | None] | None = "key",
        found_in: str | None = None,
        sample: float = 1.0,
        file_bytes: int = 64 << 20,
        keep_files: int | None = None,
    ) -> None:
        acks = {"-1": "all"}.get(str(acks), str(acks))
        if acks not in ("0", "1", "all"):
            raise ValueError(f"acks {acks}: expected 0, 1 or all")
        if not 0 < sample <= 1:
            raise ValueError(f"sample {sample}: expected a share above 0, at most 1")
        if not client:
            raise ValueError("client: expected a name")
        self.folder = Path(folder)
        self.noted = self.left_out = self.dropped = 0
        self._id_of = _reader_of(payload_id)
        if isinstance(payload_id, str):
            found_in = payload_id
        self._below = None if sample == 1 else int(sample * 2**32)
        told_status = "sent" if acks == "0" else "acked"
        where = "" if found_in is None else f',"payload_id_in":{quoted(found_in)}'
        self._begin = f'{{"client":{quoted(client)},"acks":"{acks}"{where},"topic":'
        self._acked = f',"status":"{told_status}"'
        self._topics: dict[str, str] = {}
        self._lines: list[str] = []
        self._files = _Files(self.folder, client, file_bytes, keep_files)
        self._writing = threading.Lock()
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True, name="acknowledgement-log")
        self._thread.start()
        atexit.register(self.close)

    def __call__(self, error: Any, message: Any) -> None:
        """Notes what the client was told about one record."""
        if self._below is not None and _hash_of(message) >= self._below:
            self.left_out += 1
            return
        partition = message.partition()
        if partition < 0:
            return  # It never left the client.
        topic = message.topic()
        start = self._topics.get(topic)
        if start is None:
            start = self._topics[topic] = f'{self._begin}{quoted(topic)},"partition":'
        offset = message.offset()
        named = None if self._id_of is None else self._id_of(message)
        told = self._acked if error is None else _told(error)
        name = "" if named is None else f',"payload_id":{quoted(named)}'
        at = "null" if offset is None or offset < 0 or error is not None else offset
        if len(self._lines) >= MOST_WAITING:
            self._drop(1, "the disk does not keep up")
            return
        self._lines.append(
            f'{start}{partition},"offset":{at},"ts":{int(time.time() * 1000)}{name}{told}}}\n'
        )

    def then(self, callback: DeliveryCallback) -> DeliveryCallback:
        """A delivery callback that notes the answer, then calls yours."""

        def both(error: Any, message: Any) -> None:
            self(error, message)
            callback(error, message)

        return both

    def flush(self) -> None:
        """Writes what was taken down so far."""
        with self._writing:
            count = len(self._lines)
            if not count:
                return
            chunk = self._lines[:count]
            del self._lines[:count]
            self.noted += count
            missing, why = self._files.write(chunk)
            if missing:
                self.noted -= missing
                self._drop(missing, why)

    def close(self) -> None:
        """Writes the rest; the log takes no more. Also called where the interpreter ends."""
        if not self._closed.is_set():
            self._closed.set()
            atexit.unregister(self.close)
            self._thread.join()
            self.flush()
            self._files.close()

    def __enter__(self) -> "AcknowledgementLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _run(self) -> None:
        while not self._closed.wait(FLUSH_SECONDS):
            self.flush()

    def _drop(self, count: int, why: str) -> None:
        if not self.dropped:
            print(
                f"acknowledgement log: lines are dropped, {self.folder} takes no more ({why}). The "
                "producer goes on; what is missing in the log is judged without it",
                file=sys.stderr,
            )
        self.dropped += count


class _Files:
    """Files of whole lines, one after the other; none that was there before is written to."""

    def __init__(self, folder: Path, client: str, most: int, keep: int | None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        bare = re.sub(r"[^\w.-]", "_", client)
        self._stem = folder / f"acks-{bare}-{int(time.time() * 1000)}-{os.getpid()}"
        self._most, self._keep = most, keep
        self._number = 0
        self._mine: list[Path] = []
        self._descriptor: int | None = None
        self._size = 0
        self._open()

    def write(self, lines: list[str]) -> tuple[int, str]:
        """How many of the lines could not be written, and why."""
        data = "".join(lines).encode()
        written = 0
        try:
            if self._descriptor is None:
                self._open()
            while written < len(data):
                written += os.write(self._descriptor or 0, data[written:] if written else data)
        except OSError as error:
            # A line that was begun stays torn: the next one begins in a new file.
            self.close()
            return data.count(b"\n", written), error.strerror or str(error)
        self._size += written
        if self._size >= self._most:
            self.close()
        return 0, ""

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> None:
        while True:
            path = self._stem.with_name(f"{self._stem.name}-{self._number}.jsonl")
            self._number += 1
            try:
                flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND
                self._descriptor = os.open(path, flags, 0o644)
                break
            except FileExistsError:
                continue
        self._size = 0
        self._mine.append(path)
        while self._keep is not None and len(self._mine) > max(self._keep, 1):
            self._mine.pop(0).unlink(missing_ok=True)


def _reader_of(
    payload_id: str | Callable[[Any], str | None] | None,
) -> Callable[[Any], str | None] | None:
    if payload_id is None or callable(payload_id):
        return payload_id
    if payload_id == "key":
        return lambda message: _text(message.key())
    if payload_id == "value":
        return _first_word
    raise ValueError(f"payload_id {payload_id}: expected key, value, a function or None")


def _text(content: Any) -> str | None:
    """As `diagnose` finds it again: UTF-8, else hexadecimal."""
    if content is None or content == b"" or isinstance(content, str):
        return content or None
    try:
        return str(content, "utf-8")
    except UnicodeDecodeError:
        return bytes(content).hex()


def _first_word(message: Any) -> str | None:
    value = message.value()
    found = _WORD.search(value.encode() if isinstance(value, str) else value or b"")
    return found and found[0].decode()


def _hash_of(message: Any) -> int:
    key = message.key()
    content = message.value() if key is None else key
    return zlib.crc32(content.encode() if isinstance(content, str) else content or b"")


def _told(error: Any) -> str:
    """What an answer that is no acknowledgement is in the log."""
    name = error.name() if hasattr(error, "name") else str(error)
    status = "failed" if name in NEVER_APPENDED else "unknown"
    return f',"status":"{status}","error":{quoted(name)}'

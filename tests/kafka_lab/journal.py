"""What the laboratory did and when: one JSON line per action, in UTC, beside the evidence."""

import json
import threading
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import Any


def utc_text(seconds: float) -> str:
    """Seconds since 1970 as 2026-11-20T15:18:13.826Z."""
    moment = datetime.fromtimestamp(seconds, UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


class Journal:
    """Lines of one file, written whole from any thread and flushed at once."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        self._lock = threading.Lock()
        self._file = path.open("a", encoding="utf-8")

    def write(self, **fields: Any) -> None:
        """One line; `ts` is now unless given."""
        line = json.dumps({"ts": utc_text(time.time()), **fields})
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()

    def lines(self) -> list[dict[str, Any]]:
        with self._lock:
            return [json.loads(line) for line in self.path.read_text().splitlines()]

    def close(self) -> None:
        self._file.close()

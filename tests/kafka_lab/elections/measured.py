"""What a capture and its elections were, as plain data: kept, so that it can be judged again."""

import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

MEASURED_FILE = "measured.json"
# By offset: the payload id and the leader epoch, which old formats do not tell.
Log = dict[int, tuple[str, int | None]]


@dataclass
class Elected:
    """One election: what the elected log held before anybody followed it, and what each replica
    held after it had. steps: what became of each step of the plan. led: whether it was elected."""

    replica: int
    led: bool
    log: Log
    after: dict[int, Log]
    steps: list[dict[str, Any]]


@dataclass
class Measured:
    """A partition without a leader. acks: payload id, offset and acks of all that was acknowledged;
    committed, perhaps_committed: offset and payload id. put_back: elections of older copies. away:
    the replicas that the operator says are not to be waited for."""

    story: str
    version: str
    mode: str
    replicas: list[int]
    logs: dict[int, Log]
    acks: list[tuple[str, int | None, str]]
    committed: list[tuple[int, str]]
    perhaps_committed: list[tuple[int, str]]
    elections: list[Elected] = field(default_factory=list)
    put_back: list[Elected] = field(default_factory=list)
    away: list[int] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.story}__{self.version}__{self.mode}"

    def save(self, directory: Path) -> None:
        (directory / MEASURED_FILE).write_text(json.dumps(asdict(self)))

    @classmethod
    def load(cls, directory: Path) -> "Measured":
        told = json.loads((directory / MEASURED_FILE).read_text())
        told["logs"] = _logs(told["logs"])
        told["acks"] = [tuple(each) for each in told["acks"]]
        for name in ("committed", "perhaps_committed"):
            told[name] = [tuple(each) for each in told[name]]
        for name in ("elections", "put_back"):
            told[name] = [
                Elected(**{**each, "log": _log(each["log"]), "after": _logs(each["after"])})
                for each in told.get(name, ())
            ]
        return cls(**told)


def _log(told: dict[str, list[Any]]) -> Log:
    return {int(offset): (held[0], held[1]) for offset, held in told.items()}


def _logs(told: dict[str, Any]) -> dict[int, Log]:
    return {int(broker): _log(log) for broker, log in told.items()}

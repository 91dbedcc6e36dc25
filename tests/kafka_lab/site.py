"""Where a run's files lie and what was set up: of a live cluster, and of one that was kept."""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from tests.kafka_lab import node_settings
from tests.kafka_lab.versions import Version

SITE_FILE = "site.json"


class Site:
    """`directory` has one folder per node; `assignments` are the last ones by topic."""

    def __init__(
        self, directory: Path, version: Version, brokers: tuple[int, ...], log_dirs: int = 1
    ) -> None:
        self.directory = directory
        self.version = version
        self.brokers = brokers
        self.log_dirs = log_dirs
        self.assignments: dict[str, dict[int, list[int]]] = {}

    @classmethod
    def kept(cls, directory: Path) -> "Site":
        """As `save` left it."""
        told = json.loads((directory / SITE_FILE).read_text())
        site = cls(directory, Version(told["version"]), tuple(told["brokers"]), told["log_dirs"])
        site.assignments = {
            topic: {int(number): replicas for number, replicas in spread.items()}
            for topic, spread in told["assignments"].items()
        }
        return site

    def save(self) -> None:
        told = {
            "version": self.version.name,
            "brokers": self.brokers,
            "log_dirs": self.log_dirs,
            "assignments": self.assignments,
        }
        (self.directory / SITE_FILE).write_text(json.dumps(told, indent=1))

    def home(self, node: int) -> Path:
        kind = "controller" if node == node_settings.CONTROLLER_ID else "broker"
        return self.directory / f"{kind}-{node}"

    def data(self, node: int) -> list[Path]:
        """The node's log directories."""
        if node == node_settings.CONTROLLER_ID or self.log_dirs == 1:
            return [self.home(node) / "data"]
        return [self.home(node) / f"data-{number}" for number in range(self.log_dirs)]

    def nodes(self) -> list[int]:
        controllers = [node_settings.CONTROLLER_ID] if self.version.kraft else []
        return [*self.brokers, *controllers]

    def actions(self) -> list[dict[str, Any]]:
        """What the laboratory did, in order."""
        lines = (self.directory / "actions.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def partitions_of(assignments: Mapping[str, Mapping[int, Iterable[int]]]) -> list[tuple[str, int]]:
    return [(topic, partition) for topic, spread in assignments.items() for partition in spread]

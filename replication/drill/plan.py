"""The plan of a drill: a TOML file, every key with its type; the whole is in docs/drill.md."""

import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from replication.collect.command import PLATFORMS
from replication.nearest import did_you_mean


class BadPlan(ValueError):
    """What is wrong with the plan, where, and what is expected there."""


@dataclass(frozen=True, slots=True)
class Topic:
    """partitions, replication and settings are those of a topic that the drill creates."""

    name: str
    create: bool
    partitions: int
    replication: int
    settings: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Load:
    """rate: records a second over all topics. seconds: how long at least; after: how long after the
    last fault. keys: how many different ones, 0: records without a key. sample: the share of the
    keys whose acknowledgements are noted. timeout: seconds until a record counts as unanswered."""

    rate: int = 1000
    seconds: float = 60
    after: float = 10
    keys: int = 1000
    acks: str = "all"
    idempotent: bool = True
    value_bytes: int = 100
    sample: float = 1.0
    timeout: float = 30


@dataclass(frozen=True, slots=True)
class Step:
    """Something done to the cluster. pause: seconds before it. say: what the operator is asked to
    do; run: a command line for `sh -c`, instead. timeout: seconds that it may take."""

    pause: float = 10
    say: str | None = None
    run: str | None = None
    timeout: float = 300
    may_fail: bool = False

    @property
    def told(self) -> str:
        """What it is, in one line."""
        return self.say if self.say is not None else f"run: {self.run}"


@dataclass(frozen=True, slots=True)
class Collect:
    """What is put into the evidence at the end. steps: in their order. take: folders and files by
    the name of the folder that they are copied to. platform: whose script is written out."""

    steps: tuple[Step, ...] = ()
    take: Mapping[str, tuple[Path, ...]] = field(default_factory=dict)
    platform: str | None = None


@dataclass(frozen=True, slots=True)
class Plan:
    """One drill. Paths are absolute: those in the file are relative to the file's folder."""

    path: Path
    bootstrap: str
    out: Path
    client_config: Path | None
    topics: tuple[Topic, ...]
    load: Load
    faults: tuple[Step, ...]
    collect: Collect

    @property
    def evidence(self) -> Path:
        """What `diagnose` reads: acknowledgement logs, descriptions, and what is collected."""
        return self.out / "evidence"

    @property
    def page(self) -> Path:
        return self.out / "page.html"

    @property
    def journal(self) -> Path:
        """What the drill did, an object a line."""
        return self.out / "drill.jsonl"


def read_plan(path: Path) -> Plan:
    """Raises BadPlan."""
    try:
        with path.open("rb") as file:
            found = tomllib.load(file)
    except (OSError, UnicodeDecodeError) as error:
        raise BadPlan(f"{path}: {getattr(error, 'strerror', None) or error}") from None
    except tomllib.TOMLDecodeError as error:
        raise BadPlan(f"{path}: this is no TOML: {error}") from None
    try:
        return _plan(path, found)
    except BadPlan as error:
        raise BadPlan(f"{path}: {error}") from None


def _plan(path: Path, found: dict[str, Any]) -> Plan:
    folder = path.resolve().parent
    whole = _Table("", found)
    config = whole.text("client_config", None)
    topics = tuple(_topic(table) for table in whole.tables("topic"))
    plan = Plan(
        path,
        whole.required("bootstrap"),
        folder / whole.required("out"),
        None if config is None else folder / config,
        topics,
        _load(whole.table("load")),
        tuple(_step(table, Step()) for table in whole.tables("fault")),
        _collect(whole.table("collect"), folder),
    )
    whole.end()
    if not topics:
        raise BadPlan("no [[topic]]: which topics does the load write to?")
    names = [topic.name for topic in topics]
    if len(set(names)) < len(names):
        raise BadPlan(f"[[topic]]: {max(names, key=names.count)} is there twice")
    return plan


def _topic(table: "_Table") -> Topic:
    create = table.boolean("create", True)
    if not create:
        for name in ("partitions", "replication", "min_insync_replicas", "settings"):
            if name in table.found:
                raise BadPlan(
                    f"{table.name} {name}: only with create = true; a topic that exists is taken "
                    "as it is"
                )
    settings = {key: _setting(table, key, value) for key, value in table.mapping("settings")}
    least = table.whole("min_insync_replicas", None, 1)
    if least is not None:
        settings["min.insync.replicas"] = str(least)
    topic = Topic(
        table.required("name"),
        create,
        table.whole("partitions", 1, 1) or 1,
        table.whole("replication", 3, 1) or 1,
        settings,
    )
    table.end()
    return topic


def _setting(table: "_Table", key: str, value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str | int | float):
        return str(value)
    raise BadPlan(f"{table.name} settings {key}: expected a text or a number")


def _load(table: "_Table") -> Load:
    given = Load()
    acks = table.found.pop("acks", given.acks)
    acks = {"-1": "all"}.get(str(acks), str(acks))
    if acks not in ("0", "1", "all"):
        raise BadPlan(f"{table.name} acks: {acks} is none of 0, 1, all")
    load = Load(
        table.whole("rate", given.rate, 1) or 1,
        table.number("seconds", given.seconds),
        table.number("after", given.after),
        table.whole("keys", given.keys, 0) or 0,
        acks,
        table.boolean("idempotent", acks == "all"),
        table.whole("value_bytes", given.value_bytes, 1) or 1,
        table.number("sample", given.sample),
        table.number("timeout", given.timeout),
    )
    if not 0 < load.sample <= 1:
        raise BadPlan(f"{table.name} sample: expected a share above 0, at most 1")
    if load.idempotent and acks != "all":
        raise BadPlan(f"{table.name} idempotent: only with acks = all")
    table.end()
    return load


def _step(table: "_Table", given: Step) -> Step:
    step = Step(
        table.number("pause", given.pause),
        table.text("say", None),
        table.text("run", None),
        table.number("timeout", given.timeout),
        table.boolean("may_fail", False),
    )
    if (step.say is None) == (step.run is None):
        raise BadPlan(
            f"{table.name}: expected either say = what the operator does, or run = a command line"
        )
    table.end()
    return step


def _collect(table: "_Table", folder: Path) -> Collect:
    steps = tuple(_step(each, Step(pause=0)) for each in table.tables("step"))
    take: dict[str, tuple[Path, ...]] = {}
    for name, value in table.mapping("take"):
        paths = [value] if isinstance(value, str) else value
        if not isinstance(paths, list) or not all(isinstance(p, str) for p in paths):
            raise BadPlan(f"{table.name} take {name}: expected a path or a list of paths")
        if not name or Path(name).name != name:
            raise BadPlan(f"{table.name} take {name}: expected the bare name of a folder")
        take[name] = tuple(folder / p for p in paths)
    platform = table.text("platform", None)
    if platform is not None and platform not in PLATFORMS:
        near = did_you_mean(platform, PLATFORMS) or f": there are {', '.join(PLATFORMS)}"
        raise BadPlan(f"{table.name} platform: no {platform}{near}")
    table.end()
    return Collect(steps, take, platform)


class _Table:
    """A table of the plan, whose keys are taken out one by one; those that are left are unknown."""

    def __init__(self, name: str, found: dict[str, Any]) -> None:
        self.name, self.found = name, dict(found)
        self._known: list[str] = []

    def _taken(self, key: str, given: Any, is_one: Callable[[Any], bool], expected: str) -> Any:
        self._known.append(key)
        value = self.found.pop(key, None)
        if value is None:
            return given
        if not is_one(value):
            raise BadPlan(f"{self._named(key)}: {value!r} is not {expected}")
        return value

    def _named(self, key: str) -> str:
        return f"{self.name} {key}".strip()

    def text(self, key: str, given: str | None) -> str | None:
        found: str | None = self._taken(
            key, given, lambda v: isinstance(v, str) and bool(v.strip()), "a text"
        )
        return found

    def required(self, key: str) -> str:
        found = self.text(key, None)
        if found is None:
            near = did_you_mean(key, self.found)
            raise BadPlan(f"{self._named(key)} is missing{near}")
        return found

    def boolean(self, key: str, given: bool) -> bool:
        return bool(self._taken(key, given, lambda v: isinstance(v, bool), "true or false"))

    def whole(self, key: str, given: int | None, least: int) -> int | None:
        def is_one(value: Any) -> bool:
            return isinstance(value, int) and not isinstance(value, bool) and value >= least

        found: int | None = self._taken(key, given, is_one, f"a whole number from {least} on")
        return found

    def number(self, key: str, given: float) -> float:
        def is_one(value: Any) -> bool:
            return isinstance(value, int | float) and not isinstance(value, bool) and value >= 0

        return float(self._taken(key, given, is_one, "a number from 0 on"))

    def mapping(self, key: str) -> list[tuple[str, Any]]:
        return list(self._taken(key, {}, lambda v: isinstance(v, dict), "a table").items())

    def table(self, key: str) -> "_Table":
        return _Table(f"{self.name}[{key}]", dict(self.mapping(key)))

    def tables(self, key: str) -> list["_Table"]:
        def is_one(value: Any) -> bool:
            return isinstance(value, list) and all(isinstance(each, dict) for each in value)

        name = f"{self.name.strip('[]')}.{key}".lstrip(".")
        found = self._taken(key, [], is_one, f"a list of tables ([[{name}]])")
        return [_Table(f"[[{name}]] {number}", each) for number, each in enumerate(found, 1)]

    def end(self) -> None:
        """Raises BadPlan where a key is left that nobody asked for."""
        for key in self.found:
            known = f": there are {', '.join(self._known)}"
            raise BadPlan(
                f"unknown key {self._named(key)}{did_you_mean(key, self._known) or known}"
            )

"""Settings of the jobs: conf/default.toml, then a profile, then flags; unknown keys are refused."""

import argparse
import re
import tomllib
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

from replication.paths import project_root

AVAILABLE_NOW = "available-now"
INTERVAL = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|milliseconds?|s|seconds?|m|minutes?)?\s*")
SECONDS = {"ms": 0.001, "milli": 0.001, "s": 1.0, "": 1.0, "m": 60.0}


class SettingsError(ValueError):
    """A setting that is unknown, mistyped or out of range; the text says which and where."""


@dataclass(frozen=True)
class Settings:
    """What conf/default.toml explains, key by key."""

    trigger: str
    max_files_per_trigger: int
    max_offsets_per_trigger: int
    fold_max_files_per_trigger: int
    fold_max_bytes_per_trigger: int
    settle_seconds: float
    poll_seconds: float
    state_shards: int
    held_limit: int
    held_total_limit: int
    write_threads: int
    starting_offsets: str
    fail_on_data_loss: bool
    silence_bound: float
    base_after: float

    @property
    def interval_seconds(self) -> float | None:
        """The trigger interval, None for available-now."""
        return None if self.trigger == AVAILABLE_NOW else _seconds(self.trigger)


def _seconds(text: str) -> float:
    match = INTERVAL.fullmatch(text)
    if match is None or float(match[1]) <= 0:
        raise SettingsError(
            f"trigger {text!r} is neither {AVAILABLE_NOW} nor an interval such as '5 seconds'"
        )
    unit = match[2] or ""
    scale = SECONDS["milli"] if unit.startswith("mi") and "sec" in unit else SECONDS.get(unit[:1])
    if unit == "ms":
        scale = SECONDS["ms"]
    assert scale is not None
    return float(match[1]) * scale


def add_flags(parser: argparse.ArgumentParser, names: tuple[str, ...]) -> None:
    """Adds --profile and a flag for each of the settings named."""
    parser.add_argument("--profile", help="conf/<profile>.toml: settings that differ from default")
    told = explained(project_root() / "conf" / "default.toml")
    types = {f.name: f.type for f in fields(Settings)}
    for name in names:
        flag = "--" + name.replace("_", "-")
        kind = types[name]
        metavar = {int: "N", float: "SECONDS", bool: "true|false", str: "TEXT"}[kind]  # type: ignore[index]
        parser.add_argument(flag, dest=name, metavar=metavar, help=told.get(name, name))


def explained(path: Path) -> dict[str, str]:
    """Of each setting of a file: the comment above it, and its value; for the help of flags.

    {} where the file cannot be read: load() says why.
    """
    found: dict[str, str] = {}
    comment: list[str] = []
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError):
        return found
    for line in lines:
        if line.startswith("#"):
            comment.append(line.removeprefix("#").strip())
        elif match := re.match(r"([a-z_]+) = (.*)", line):
            value = match[2].strip('"')
            words = f"{' '.join(comment)} Default: {value}."
            found[match[1]] = words.replace("%", "%%")
            comment = []
        else:
            comment = []
    return found


def load(flags: dict[str, Any], folder: Path | None = None) -> Settings:
    """The settings: default.toml, the profile that flags name, then flags (None: not given).

    Raises SettingsError.
    """
    folder = folder or project_root() / "conf"
    values = _read(folder / "default.toml")
    missing = [f.name for f in fields(Settings) if f.name not in values]
    if missing:
        raise SettingsError(f"{folder / 'default.toml'} lacks {', '.join(missing)}")
    profile = flags.get("profile")
    if profile:
        path = folder / f"{profile}.toml"
        if not path.is_file():
            known = ", ".join(sorted(p.stem for p in folder.glob("*.toml")))
            raise SettingsError(f"no profile {profile!r}: {folder} has {known}")
        values |= _read(path)
    settings = Settings(**values)
    types = {f.name: f.type for f in fields(Settings)}
    given = {
        name: _from_text(f"--{name.replace('_', '-')}", str(flags[name]), types[name])
        for name in types
        if flags.get(name) is not None
    }
    return _checked(replace(settings, **given))


def _read(path: Path) -> dict[str, Any]:
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"{path}: {error}") from None
    types = {f.name: f.type for f in fields(Settings)}
    for key, value in values.items():
        if key not in types:
            raise SettingsError(f"{path}: unknown key {key!r}; known: {', '.join(types)}")
        wanted = types[key]
        if wanted is float and type(value) is int:
            values[key] = float(value)
        elif type(value) is not wanted:
            name = getattr(wanted, "__name__", wanted)
            raise SettingsError(f"{path}: {key} = {value!r} is no {name}")
    return values


def _from_text(flag: str, text: str, wanted: Any) -> Any:
    if wanted is bool:
        if text.lower() not in ("true", "false"):
            raise SettingsError(f"{flag} {text!r} is neither true nor false")
        return text.lower() == "true"
    try:
        return wanted(text)
    except ValueError:
        raise SettingsError(f"{flag} {text!r} is no {wanted.__name__}") from None


def _checked(settings: Settings) -> Settings:
    if settings.trigger != AVAILABLE_NOW:
        _seconds(settings.trigger)
    for field in fields(Settings):
        value = getattr(settings, field.name)
        if field.type is int and value < 1:
            raise SettingsError(f"{field.name} must be at least 1, not {value}")
        if field.type is float and not 0 <= value < 86_400:
            raise SettingsError(f"{field.name} must be between 0 and a day of seconds, not {value}")
    return settings

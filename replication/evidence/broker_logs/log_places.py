"""Which log directory a line or a broker's settings name."""

import re
from pathlib import PurePath, PurePosixPath, PureWindowsPath

from replication.evidence.broker_logs.broker_log import LogLineFact

_ABSOLUTE = re.compile(r"^(?:/|[A-Za-z]:[\\/])")


def log_directory(fact: LogLineFact) -> str | None:
    """The log directory that a line names; some name the partition's own in it."""
    named = fact.fields.get("directory")
    if not isinstance(named, str) or not named:
        return None
    directory = _path(named)
    own = f"{directory.name}.".startswith(f"{fact.topic}-{fact.partition}.")
    return str(directory.parent if own else directory)


def is_aside(fact: LogLineFact) -> bool:
    """Whether a line is about a log that is deleted, stray or on its way to another directory:
    the partition's name is followed by more (`UnifiedLog`)."""
    named = fact.fields.get("directory")
    return isinstance(named, str) and _path(named).name.startswith(
        f"{fact.topic}-{fact.partition}."
    )


def directories_of_settings(values: dict[str, str]) -> set[str] | None:
    """The log directories that a broker's settings name; None where one is not absolute, which
    lines print otherwise."""
    places = values.get("log.dirs") or values.get("log.dir") or ""
    named = [place.strip() for place in places.strip("[]").split(",") if place.strip()]
    if not named or not all(_ABSOLUTE.match(place) for place in named):
        return None
    return {str(_path(place)) for place in named}


def _path(text: str) -> PurePath:
    if "\\" in text:
        return PureWindowsPath(text)
    # Of two slashes at the beginning POSIX may make something else; Java does not.
    return PurePosixPath(f"/{text.lstrip('/')}" if text.startswith("//") else text)

"""Text logs that several brokers wrote into one folder, as one installation does that runs them.

Of such a folder no file is one broker's because its lines happen to name no other: a rotated log's
piece may be quiet. Each line is given to whom it is tied, by its own file and by those beside it.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from datetime import tzinfo
from pathlib import Path
from typing import Any

from replication.evidence.broker_logs.starts import Starts
from replication.evidence.broker_logs.untold_starts import with_untold_starts
from replication.evidence.broker_logs.writer_handles import Homes
from replication.evidence.collecting.broker_text_log import (
    Beside,
    BrokerLog,
    read_log_of_several,
)
from replication.evidence.collecting.owners import broker_by_name

_DATE = re.compile(r"[-_.]\d{4}-?\d\d-?\d\d(?:[-_.T]?\d\d)*")
# Not a date: at most four digits behind the file's name.
_NUMBERED = re.compile(r"\.(?:log|out|txt|json)[-_.](\d{1,4})(?:\.(?:gz|xz|bz2|zst))?$")
_ROTATED = re.compile(r"^(.*?\.(?:log|out|txt|json))[-_.].*$")
_Again = Callable[[list[tuple[Path, Beside]]], Iterable[BrokerLog]]


def read_again(
    logs: list[tuple[Path, Beside]],
    *,
    spread: Callable[..., Iterable[Any]],
    zone: tzinfo,
    folder: Path | None,
) -> Iterable[BrokerLog]:
    """Logs of several brokers, each line with its writer."""
    return spread(_Reader(zone, folder), logs)


class _Reader:
    """Reads one log; a class, so that it can be sent to other processes."""

    def __init__(self, zone: tzinfo, folder: Path | None) -> None:
        self.zone, self.folder = zone, folder

    def __call__(self, log: tuple[Path, Beside]) -> BrokerLog:
        return read_log_of_several(log[0], self.zone, self.folder, log[1])


def with_writers(
    logs: list[BrokerLog],
    place: Callable[[Path], Path],
    again: _Again,
    decided: Callable[[Path], bool] = lambda _: False,
) -> list[BrokerLog]:
    """The logs, those of several brokers read once more.

    place: where a file lies as the user knows it. again: reads such logs, in their order. decided:
    whether the user said of which broker the file at that place is; one that names no other is.
    """
    for log in logs:
        log.shared = log.shared and not (len(_writers(log)) < 2 and decided(place(Path(log.path))))
    folders: dict[Path, list[BrokerLog]] = {}
    for log in logs:
        folders.setdefault(place(Path(log.path)).parent, []).append(log)
    wanted: dict[str, Beside] = {}
    for beside in folders.values():
        shared = [log for log in beside if not _is_named_after_its_writer(log)]
        if _is_of_several(shared):
            told = (frozenset(w for log in shared for w in _writers(log)), _homes(shared))
            for pieces in _in_order(shared):
                writers = {writer for log in pieces for writer in _writers(log)}
                starts = Starts.of([log.marks for log in pieces], writers)
                wanted.update((log.path, (*told, starts, n)) for n, log in enumerate(pieces))
    read = again([(Path(path), told) for path, told in wanted.items()]) if wanted else ()
    found = {log.path: log for log in read}
    _tell_starts([log for log in logs if log.path not in found])
    for log in logs:
        if log.path in found:
            found[log.path].names_zone, found[log.path].damaged = log.names_zone, log.damaged
    return [found.get(log.path, log) for log in logs]


def _tell_starts(logs: list[BrokerLog]) -> None:
    """Adds the starts that files of one broker show without their first line."""
    still_starting: dict[tuple[Path, str], list[BrokerLog]] = {}
    for log in logs:
        if log.untold.is_open:
            path = Path(log.path)
            still_starting.setdefault((path.parent, unrotated(path.name)), []).append(log)
    for log in logs:
        if log.untold.found and log.speaks_for_one:
            path = Path(log.path)
            before = still_starting.get((path.parent, unrotated(path.name)), ())
            goes_on = any(other is not log and _follows(other, log) for other in before)
            log.processes = with_untold_starts(log.processes, log.untold.found, goes_on=goes_on)


def _writers(log: BrokerLog) -> set[int]:
    return {writer for writer in log.writers if writer is not None}


def _is_named_after_its_writer(log: BrokerLog) -> bool:
    """Whether a file that names one broker is called after it."""
    return _writers(log) == {broker_by_name(Path(log.path).name)}


def _is_of_several(logs: list[BrokerLog]) -> bool:
    """Whether a file of a folder names several brokers, or pieces of one rotated log do; or its
    directories are not those of the brokers that it names."""
    if any(log.shared for log in logs):
        return True
    pieces: dict[str, set[int]] = {}
    for log in logs:
        pieces.setdefault(unrotated(Path(log.path).name), set()).update(_writers(log))
    return any(len(writers) > 1 for writers in pieces.values())


def unrotated(name: str) -> str:
    """`server.log` for server.log.2, server.log.2018-05-24-11.gz and server-2018-05-24.log."""
    undated = _DATE.sub("", name)
    rotated = _ROTATED.match(undated)
    return rotated[1] if rotated else undated


def age_of_piece(name: str, *, newest_first: bool) -> tuple[bool, str, int]:
    """By what a rotated log's pieces are sorted, oldest first: the one that is written is named
    without a date and a number. newest_first: of numbers the lowest is the newest."""
    dated, numbered = _DATE.search(name), _NUMBERED.search(name)
    number = int(numbered[1]) if numbered else 0
    digits = "".join(c for c in dated[0] if c.isdigit()) if dated else ""
    return not (dated or numbered), digits, -number if newest_first else number


def _in_order(logs: list[BrokerLog]) -> Iterator[list[BrokerLog]]:
    """The pieces of each rotated log, oldest first, as far as one follows the other: by numbers,
    0 being the newest, of which none is missing. All others are by themselves."""
    rotated: dict[str, dict[int, BrokerLog]] = {}
    for log in logs:
        number = _NUMBERED.search(Path(log.path).name)
        known = rotated.setdefault(unrotated(Path(log.path).name), {})
        which = int(number[1]) if number else 0
        if which in known:
            yield [log]
        else:
            known[which] = log
    for pieces in rotated.values():
        run: list[BrokerLog] = []
        for which in sorted(pieces, reverse=True):
            if run and (which + 1 not in pieces or not _follows(run[-1], pieces[which])):
                yield run
                run = []
            run.append(pieces[which])
        yield run


def _follows(log: BrokerLog, later: BrokerLog) -> bool:
    """Whether a piece can be the next one: some number the newest highest."""
    return log.first_at is None or later.first_at is None or log.first_at <= later.first_at


def _homes(logs: list[BrokerLog]) -> dict[int, set[str]]:
    """The log directories of all brokers whose settings these logs hold."""
    homes = Homes()
    for fact in (fact for log in logs for fact in log.processes):
        homes.learn(fact)
    return homes.of

"""Starts of a broker whose first line is not there: collectors and `kubectl logs --since` begin
anywhere.

What only a starting process prints tells that it started: it loads logs that are not empty, finds
its marker of a clean stop or none, recovers segments, says that it is STARTING. The start is then
put where the first of these lines is. What it printed after its logs were loaded tells nothing:
by then roles may have been taken that the file does not have.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from replication.evidence.broker_logs.broker_log import LogLineFact

# Printed before a process has taken any role, and by a starting one alone.
_SHOW_IT = frozenset(
    ("server_starting", "unclean_recovery", "clean_shutdown_found", "segment_recovered",
     "corruption_found", "corrupt_segment_deleted")
)  # fmt: skip
# A starting process prints them too, and so do clients in it, or a running one.
_MAY_BELONG = frozenset(("kafka_version", "settings", "cluster_id"))
_MAY_BELONG_MILLISECONDS = 120_000
# By then the start is over.
_END_IT = frozenset(
    ("server_started", "stopping", "stopped_cleanly", "process_signalled", "became_leader",
     "became_follower", "leader_and_isr_received", "leadership_kept", "fetcher_added",
     "fetcher_removed", "truncated", "truncation_without_effect", "log_created")
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class UntoldStart:
    """line: what takes the place of the process's first line. begins_file: no line before it in the
    file shows that the broker ran, so that the file before it may hold the start's first line."""

    line: LogLineFact
    begins_file: bool


@dataclass(slots=True)
class UntoldStarts:
    """Such starts in the lines of one broker's file. is_open: the file ends within a start whose
    first line, or place, is known."""

    found: list[UntoldStart] = field(default_factory=list)
    is_open: bool = False
    _ran: bool = False
    _near: list[LogLineFact] = field(default_factory=list)

    def take(self, fact: LogLineFact) -> None:
        """A line, in the order of the file."""
        if fact.kind == "process_started":
            self.is_open, self._near = True, []
        elif _ends_a_start(fact):
            self.is_open, self._ran, self._near = False, True, []
        elif _shows_a_start(fact):
            if not self.is_open:
                near = [f for f in self._near if _belongs(f, fact)]
                first = near[0] if near else fact
                start = fact._replace(
                    kind="process_started", at=first.at, line=first.line, broker=None, topic=None,
                    partition=None, fields={},
                )  # fmt: skip
                self.found.append(UntoldStart(start, not self._ran))
            self.is_open, self._near = True, []
        elif fact.kind in _MAY_BELONG and not self.is_open:
            self._near.append(fact)


def _shows_a_start(fact: LogLineFact) -> bool:
    if fact.kind == "log_loaded":
        # Up to 2.7 a running broker prints it as well of a log that it makes, which is empty.
        return bool(fact.fields.get("log_end_offset"))
    if fact.kind == "server_state_changed":
        return fact.fields.get("state") == "STARTING"
    return fact.kind in _SHOW_IT


def _ends_a_start(fact: LogLineFact) -> bool:
    started = fact.kind == "server_state_changed" and fact.fields.get("state") == "STARTED"
    return started or fact.kind in _END_IT


def _belongs(before: LogLineFact, fact: LogLineFact) -> bool:
    if before.at is None or fact.at is None:
        return before.at is None and fact.at is None
    return 0 <= fact.at - before.at <= _MAY_BELONG_MILLISECONDS


def with_untold_starts(
    processes: list[LogLineFact], found: Iterable[UntoldStart], *, goes_on: bool
) -> list[LogLineFact]:
    """A file's lines about the process, in their order, and the starts that it shows without their
    first line. goes_on: the file before it ends within a start, which this one goes on with."""
    more = [start.line for start in found if not (goes_on and start.begins_file)]
    return sorted([*more, *processes], key=lambda fact: fact.line) if more else processes

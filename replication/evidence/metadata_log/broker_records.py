"""What a record makes of a broker's standing with the controller."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from replication.evidence.metadata_log.history import BrokerChange
from replication.evidence.metadata_log.log_parts import PlacedRecord
from replication.evidence.metadata_log.metadata_versions import newest_level


@dataclass(frozen=True, slots=True)
class Standing:
    """The last known standing of one broker: decides whether an election was a preferred one."""

    incarnation: str | None
    fenced: bool
    in_controlled_shutdown: bool


Step = tuple[Standing | None, list[BrokerChange]]


def standing_after(known: Standing | None, entry: PlacedRecord) -> Step:
    """The broker's standing after a record about it (None: it has none), and what changed."""
    return _STEPS[entry.record.name](known, entry)


def _registered(known: Standing | None, entry: PlacedRecord) -> Step:
    values = entry.record.values
    now = Standing(
        incarnation=values["incarnation_id"],
        fenced=values["fenced"],
        in_controlled_shutdown=values.get("in_controlled_shutdown", False),
    )
    changes = [
        replace(
            _change("registered", now, entry),
            log_dirs=tuple(values.get("log_dirs", ())),
            metadata_version=newest_level(values.get("features", ())),
        )
    ]
    if not now.fenced:
        changes.append(_change("unfenced", now, entry))
    if now.in_controlled_shutdown:
        changes.append(_change("controlled_shutdown", now, entry))
    return now, changes


def _unregistered(known: Standing | None, entry: PlacedRecord) -> Step:
    return None, [_change("unregistered", known, entry)]


def _fenced(known: Standing | None, entry: PlacedRecord) -> Step:
    return _with_fence(known, entry, entry.record.name == "FenceBrokerRecord")


def _registration_changed(known: Standing | None, entry: PlacedRecord) -> Step:
    values = entry.record.values
    changes: list[BrokerChange] = []
    if values.get("fenced", 0) != 0:
        known, changes = _with_fence(known, entry, values["fenced"] == 1)
    if values.get("in_controlled_shutdown", 0) == 1:
        known = known and replace(known, in_controlled_shutdown=True)
        changes.append(_change("controlled_shutdown", known, entry))
    return known, changes


def _with_fence(known: Standing | None, entry: PlacedRecord, fenced: bool) -> Step:
    now = known and replace(known, fenced=fenced)
    return now, [_change("fenced" if fenced else "unfenced", now, entry)]


def _change(kind: str, now: Standing | None, entry: PlacedRecord) -> BrokerChange:
    return BrokerChange(
        broker=entry.record.values["broker_id"],
        kind=kind,
        broker_epoch=entry.record.values["broker_epoch"],
        incarnation=now.incarnation if now else None,
        at=entry.at,
        metadata_offset=entry.offset,
    )


_STEPS: dict[str, Callable[[Standing | None, PlacedRecord], Step]] = {
    "RegisterBrokerRecord": _registered,
    "UnregisterBrokerRecord": _unregistered,
    "FenceBrokerRecord": _fenced,
    "UnfenceBrokerRecord": _fenced,
    "BrokerRegistrationChangeRecord": _registration_changed,
}

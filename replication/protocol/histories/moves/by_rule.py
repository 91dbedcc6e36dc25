"""The rules of replication, asked about one offset: the only place where histories call `rules/`.

A log at one offset is a record or none; what the rule says of the whole log is asked of logs that
differ at that offset alone. Where the release is not known, what any release allows is allowed.
"""

from functools import cache

from replication.protocol.ground.leader_epoch_cache import end_offset_for_epoch
from replication.protocol.ground.model import EpochEndOffset, EpochEntry
from replication.protocol.ground.versions import GENERATIONS, Behaviour, behaviour
from replication.protocol.rules.high_watermark_of_follower import high_watermark_of_follower
from replication.protocol.rules.high_watermark_of_leader import (
    RemoteReplica,
    high_watermark_of_leader,
)
from replication.protocol.rules.start_up_recovery import OnDisk, start_up_recovery
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncate_on_fetch import truncate_on_fetch
from replication.protocol.rules.truncate_to_high_watermark import truncate_to_high_watermark

# The offset that is asked about, in logs that are equal below it.
AT, PAST = 1, 2
BY_HIGH_WATERMARK = "truncate_to_high_watermark"
BY_LATEST_EPOCH = "truncate_to_leader_end_offset"
BY_COMMON_EPOCH = ("truncate_by_common_epoch", "truncate_on_fetch")


@cache
def possible(flags: Behaviour | None) -> tuple[Behaviour, ...]:
    """The release's behaviour; where it is not known, one of each generation."""
    return (flags,) if flags is not None else tuple(map(behaviour, GENERATIONS.values()))


def truncation_of(flags: Behaviour | None) -> str:
    """The truncation rule; where the release is not known, the one that allows most."""
    return BY_LATEST_EPOCH if flags is None else flags.truncation


@cache
def keeps_by_epoch(own: int, leaders: int | None, flags: Behaviour | None) -> bool:
    """Whether a follower keeps its record of an epoch, where its leader has one of another or none.

    By the last common epoch (KIP-279), in rounds until it comes to rest.
    """
    cuts = []
    for rules in possible(flags):
        if rules.truncation not in BY_COMMON_EPOCH:
            continue
        theirs = () if leaders is None else (EpochEntry(leaders, AT),)
        end, leaders_end = PAST, AT if leaders is None else PAST
        mine, asked = (EpochEntry(own, AT),), own
        if leaders is None:
            cuts.append(AT)
            continue
        answer = end_offset_for_epoch(theirs, asked, leaders_end, rules)
        rule = truncate_on_fetch if rules.truncation == "truncate_on_fetch" else (
            truncate_by_common_epoch
        )  # fmt: skip
        cuts.append(rule(EpochEndOffset(*answer), mine, end, AT, rules).to_offset)
    return any(to >= PAST for to in cuts)


@cache
def keeps_by_high_watermark(above: bool) -> bool:
    """Whether a follower that cuts to its own high watermark keeps the record."""
    return truncate_to_high_watermark(PAST if above else AT).to_offset >= PAST


@cache
def may_commit(all_have_it: bool, isr_size: int, minimum: int, flags: Behaviour | None) -> bool:
    """Whether a leader with the record may raise its high watermark above it.

    all_have_it: every member of the ISR has shown that it holds something at the offset: a leader
    counts positions, not records.
    """
    followers = [RemoteReplica(PAST if all_have_it else AT, True, True)] * (isr_size - 1)
    return any(
        high_watermark_of_leader(AT, PAST, followers, isr_size, minimum, rules) >= PAST
        for rules in possible(flags)
    )


@cache
def counts_before_it_cuts(flags: Behaviour | None) -> bool:
    """Whether a fetch that is answered with where the logs part counts as progress (KAFKA-13141):
    the leader counts what its follower is about to cut."""
    return any(
        rules.has("truncates_on_fetch") and not rules.has("diverging_fetch_is_no_progress")
        for rules in possible(flags)
    )


@cache
def commits_alone(minimum: int, flags: Behaviour) -> bool:
    """Whether a leader that is alone in its ISR commits at once what it holds."""
    return high_watermark_of_leader(AT, PAST, [], 1, minimum, flags) >= PAST


@cache
def after_start(has: bool, checkpointed: bool) -> bool:
    """Whether the high watermark is above the offset after a start that loaded one, which was."""
    end = PAST if has else AT
    disk = OnDisk(end, high_watermark=PAST if checkpointed else AT)
    return start_up_recovery(disk, behaviour(GENERATIONS["kip_320"])).high_watermark >= PAST


@cache
def takes_over(answered: bool, has: bool, flags: Behaviour | None) -> bool:
    """Whether a follower's high watermark is above the offset after an answer that named one."""
    end = PAST if has else AT
    told = PAST if answered else AT
    return any(high_watermark_of_follower(told, 0, end, rules) >= PAST for rules in possible(flags))

"""The answer of `preflight` for people: a table for each profile, then how, then what closes it."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any

from replication.foresight.worlds import KINDS, PROMISED
from replication.protocol.ground.versions import behaviour
from replication.reports.inventory_words import counted

MOST_NAMED = 6
CELLS = {"can_lose": "CAN LOSE", "cannot": "cannot", "not_found": "not found"}
HEADINGS = {"acks_all": "acks=all", "read": "read", "committed": "committed", "acks_1": "acks=1"}
MEANS = {
    "acks_all": "records answered with acks=all",
    "read": "records that a consumer has read",
    "committed": "committed records",
    "acks_1": "records answered with acks=1",
}
CONFIRMED = "records that were answered with acks=all, read or committed"
WORDS = {"can_lose": "CAN LOSE", "not_found": "not found", "cannot": "well"}
ALONE = (
    "; min.insync.replicas 1: acks=all is answered with the leader alone in the ISR, too, so no "
    "other replica need ever have had such a record"
)
LAST_IN_ISR = (
    "Without eligible leader replicas the last replica in the ISR is elected again, whatever its "
    "disk has lost. A higher min.insync.replicas does not stop that election; it only makes sure "
    "that another replica had the record."
)
NOBODY_SAYS = "No file and no flag says these, so the release's defaults are taken"
SOME_SAY = (
    "The files of other brokers say these, those of {} do not (or are missing), so of those the "
    "release's defaults are taken"
)
# What the last replica in the ISR may lose its records by.
OF_A_DISK = {"power_of_one", "one_disk", "directory_deleted"}
NOTES = (
    "CAN LOSE: --histories draws the shortest history, --format json has it as a scenario. cannot: "
    "none of the histories within the bound loses one. not found: none of those up to so many "
    "steps does, and longer ones were not looked at (--states takes more).",
    "acks=1 promises nothing beyond the leader: a producer with acks=all is the remedy.",
)


def text(answer: dict[str, Any], *, histories: bool = False) -> str:
    """The answer of `preflight --format text`. histories: with the shortest way to each loss."""
    lines = [*in_short(answer), ""]
    for profile in answer["profiles"]:
        lines += [*_profile(profile, histories=histories), ""]
    records = counted(answer["bound"]["records"], "record")
    lines += [
        *NOTES,
        f"Looked at: {records} and one more for each replica that lags, every order of writes, "
        "fetches, lags, elections and returns, once the failure as often as its row says. Not "
        "looked at: answers to fetches that come late, and moves of leadership, but for one back "
        "to the preferred replica where another one leads first.",
        *_joined_early(answer["profiles"]),
    ]
    return "\n".join(lines).rstrip() + "\n"


def in_short(answer: dict[str, Any]) -> Iterator[str]:
    """Which topics are well and which can lose, for each release with its way of electing."""
    profiles = answer["profiles"]
    partitions: Counter[str] = Counter()
    for topic in (t for p in profiles for t in p["topics"]):
        partitions[topic["topic"]] += topic["partitions"]
    losing = {t["topic"] for p in profiles if p["answer"] == "can_lose" for t in p["topics"]}
    asked = answer["decided_by"]
    kinds = " or ".join(MEANS[kind] for kind in asked)
    kinds = CONFIRMED if asked == list(PROMISED) else kinds
    yield f"{len(losing)} of {counted(len(partitions), 'topic')} CAN LOSE {kinds}."
    by_release: dict[str, list[dict[str, Any]]] = {}
    for profile in profiles:
        by_release.setdefault(_release(profile), []).append(profile)
    for release, of in by_release.items():
        yield f"  {release}"
        yield from _other_releases(of)
        for profile in sorted(of, key=_badness):
            yield f"    {WORDS[profile['answer']]:10}{_topics(profile, partitions)}{_by(profile)}"
        yield from _defaults(of)
        by = {name for p in of if not p["eligible_leader_replicas"] for name in p["can_lose_by"]}
        if by & OF_A_DISK:
            yield f"    {LAST_IN_ISR}"


def _joined_early(profiles: list[dict[str, Any]]) -> Iterator[str]:
    """What two crashes can lose beyond what is looked at, by releases of which it is known."""
    releases = {
        profile["kafka_version"]
        for profile in profiles
        if not behaviour(profile["kafka_version"]).has("isr_expansion_waits_for_epoch_start")
        for row in profile["failures"]
        if row["failure"] == "two_brokers" and not all(_is_lost(row, kind) for kind in PROMISED)
    }
    if releases:
        yield (
            f"Kafka {' and '.join(sorted(releases))}: two crashes can lose more than this finds. "
            "A broker that leads again after its own crash lets a follower without the newest "
            "records back into the ISR (KAFKA-7128, up to 2.0.0); these records are lost if the "
            "leadership is moved to that follower before it has fetched them. From 2.0.1 on this "
            "cannot happen."
        )


def _other_releases(profiles: list[dict[str, Any]]) -> Iterator[str]:
    """Where brokers run several releases: by whose rules it was asked."""
    asked = profiles[0]["kafka_version"]
    run = [*dict.fromkeys(release for p in profiles for release in p["brokers_run"])]
    if len(run) > 1:
        yield (
            f"    The brokers run {' and '.join(run)}, and this is asked by the rules of {asked}; "
            "--kafka VERSION asks by another's."
        )


def _defaults(profiles: list[dict[str, Any]]) -> Iterator[str]:
    """What was taken by default: an answer of well rests on it as on what was handed over."""
    found: dict[str, set[int]] = {}
    for default in (d for p in profiles for d in p["defaults"]):
        of = found.setdefault(f"{default['setting']} {default['value']}", set())
        of.update(default["brokers"])
    for brokers in sorted({tuple(sorted(of)) for of in found.values()}):
        told = ", ".join(name for name, of in found.items() if of == set(brokers))
        if not brokers:
            yield f"    {NOBODY_SAYS}: {told}."
            continue
        those = ", ".join(map(str, brokers))
        yield (
            f"    {SOME_SAY.format(those)}: {told}. Hand over what `kafka-configs --describe --all "
            f"--entity-type brokers --entity-name {brokers[0]}` prints, and so for each."
        )


def _badness(profile: dict[str, Any]) -> tuple[Any, ...]:
    return (
        list(WORDS).index(profile["answer"]),
        -len(profile["can_lose_by"]),
        profile["min_insync_replicas"],
    )


def _by(profile: dict[str, Any]) -> str:
    """By what, and what its min.insync.replicas adds to it."""
    alone = profile["leader_alone_answers_acks_all"]
    if profile["answer"] == "cannot":
        return f": none of the failures that were asked about loses one{ALONE if alone else ''}"
    if profile["answer"] == "not_found":
        return ", as far as searches went; not all of them ended"
    return f", by {', '.join(profile['can_lose_by'])}{ALONE if alone else ''}"


def _topics(profile: dict[str, Any], partitions: Mapping[str, int] | None = None) -> str:
    """partitions: of each topic, in all profiles: of how many of them it is said, if not of all."""
    topics = profile["topics"]
    more = f" and {len(topics) - MOST_NAMED} more" if len(topics) > MOST_NAMED else ""
    names = []
    for t in topics[:MOST_NAMED]:
        whole = (partitions or {}).get(t["topic"], t["partitions"])
        some = f" ({t['partitions']} of its {whole} partitions)" if whole > t["partitions"] else ""
        names.append(f"{t['topic']}{some}")
    return ", ".join(names) + more


def _release(profile: dict[str, Any]) -> str:
    controller = "KRaft" if profile["controller"] == "kraft" else "ZooKeeper"
    told = f"Kafka {profile['kafka_version']} ({controller})"
    if profile["controller"] != "kraft":
        return told
    eligible = "on" if profile["eligible_leader_replicas"] else "off"
    return f"{told}, eligible leader replicas {eligible}"


def _profile(profile: dict[str, Any], *, histories: bool) -> Iterator[str]:
    topics = profile["topics"]
    partitions = counted(sum(t["partitions"] for t in topics), "partition")
    yield f"{counted(len(topics), 'topic')} ({_topics(profile)}), {partitions}"
    yield f"  {_settings(profile)}"
    yield ""
    yield "  " + "failure".ljust(20) + "".join(HEADINGS[kind].ljust(11) for kind in KINDS)
    for row in profile["failures"]:
        yield "  " + row["failure"].ljust(20) + _cells(row)
    if histories:
        yield from _histories(profile)
    yield from _closed(profile)


def _settings(profile: dict[str, Any]) -> str:
    release, *eligible = _release(profile).split(", ")
    told = [
        release,
        counted(profile["replicas"], "replica"),
        f"min.insync.replicas {profile['min_insync_replicas']}",
        f"unclean election {'on' if profile['unclean_leader_election'] else 'off'}",
    ]
    told += eligible
    if profile["flushes_each_record"]:
        told.append("each record flushed")
    if profile["racks"]:
        told.append(counted(len(set(profile["racks"])), "rack"))
    return ", ".join(told)


def _cells(row: dict[str, Any]) -> str:
    if row["not_asked"]:
        return f"not asked: {row['not_asked']}"
    cells = ""
    for kind in KINDS:
        cells += CELLS[row["records"][kind]["answer"]].ljust(11)
    far = "all" if row["steps"] is None else f"all of up to {row['steps']} steps"
    lags = "no lag" if not row["lags"] else counted(row["lags"], "lag")
    return f"{cells}{row['bound']}, {lags}; {row['states']} states, {far}"


def _histories(profile: dict[str, Any]) -> Iterator[str]:
    """The shortest history of each kind of failure, of the strongest promise that it breaks."""
    seen: dict[str, str] = {}
    for row in profile["failures"]:
        kind = next((k for k in PROMISED if _is_lost(row, k)), None)
        if kind is None:
            continue
        one = row["records"][kind]
        commands = "\n".join(step["command"] for step in one["history"])
        kinds = ", ".join(MEANS[k] for k in PROMISED if _is_lost(row, k))
        yield ""
        yield f"  {row['failure']}: {row['means']}. CAN LOSE {kinds}:"
        if commands in seen:
            yield f"    as under {seen[commands]}"
            continue
        seen[commands] = row["failure"]
        for line in one["drawn"][one["drawn"].index("ok") + 1 :]:
            if line and line != "----":
                yield f"    {line}"


def _is_lost(row: dict[str, Any], kind: str) -> bool:
    found = row["records"][kind]
    return bool(found and found["answer"] == "can_lose")


def _closed(profile: dict[str, Any]) -> Iterator[str]:
    """Which changes close which kinds of failure, and their prices."""
    by_changes: dict[tuple[tuple[str, str], ...], list[str]] = {}
    open_still: list[str] = []
    for row in profile["failures"]:
        if row["closing"] == "none_found":
            open_still.append(row["failure"])
        if row["closing"] != "found":
            continue
        changes = tuple((c["change"], c["price"]) for c in row["is_closed_by"])
        by_changes.setdefault(changes, []).append(row["failure"])
    for changes, failures in by_changes.items():
        close = "closes" if len(changes) == 1 else "close"
        yield ""
        yield f"  {' and '.join(c for c, _ in changes)} {close} {', '.join(failures)}. The price:"
        yield from (f"    {change}: {price}" for change, price in changes)
    if open_still:
        yield ""
        yield (
            f"  No three of the changes that were tried close {', '.join(open_still)}, as far as "
            "searches went."
        )

"""What really became of the records: from bytes on disk, acknowledgements and the controller.

Nothing here uses the product. The final logs are read by Kafka's own kafka-dump-log, what was on
the disks meanwhile by kafka-python; where both saw the same log they must agree.

The whole run is judged, life by life of the topic and term by term of its leaders: a record that
was committed (`commits`) or acknowledged has to be in the log of every leader after. One that a
later leader lacked counts as lost then, also where it came back.
"""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from tests.kafka_lab import causes, dump_tool
from tests.kafka_lab.commits import Commits, Rules, commits, copies, term_at
from tests.kafka_lab.history import (
    Election,
    LeaderStart,
    LeaderTerm,
    Life,
    TopicPartition,
    elections,
    leader_at,
    leader_starts,
    lives,
    seconds_of,
    terms,
    told_high_watermarks,
)
from tests.kafka_lab.lineage import Replicas, first_start, payload_ids, reigns, took_up
from tests.kafka_lab.logs_on_disk import (
    Held,
    checkpoint_entries,
    markers_in,
    read_batches,
    records,
    segment_files,
)
from tests.kafka_lab.notes import HighWatermarkSample, LogSample, Notes
from tests.kafka_lab.sampler import HIGH_WATERMARK_FILE
from tests.kafka_lab.site import Site, partitions_of
from tests.kafka_lab.transactions import TRANSACTIONS

HOLDS, VIOLATED = "HOLDS", "VIOLATED"
# Log lines, acknowledgements and samples of different processes, all on one clock.
CLOCK_SLACK = 0.05
UNSEEN = 1.0
# Until an operator's order has reached every broker that runs.
TAKES_EFFECT = 10.0
# By which a record may be older than its answer: a frozen leader takes it late.
OLDER = 10.0
# Records that were committed, but that nobody was told of.
UNTOLD = "none"


@dataclass
class LostRecord:
    """One record that a later leader lacked; `sure` is False where it need not be called lost.

    `acks` is what its producer asked for, or "none" where it was told nothing. Any of `causes`,
    of `contracts` and of `statuses` is right.
    """

    payload_id: str
    offset: int
    acks: str
    sure: bool
    committed: bool
    recovered: bool
    causes: list[str]
    contracts: list[str]
    statuses: list[str]
    missing_from: str
    leader_epoch: int | None = None


@dataclass
class PartitionTruth:
    """The verdicts (None where the laboratory itself cannot tell) and what they rest on."""

    verdicts: dict[str, str | None]
    losses: list[LostRecord]
    only_beyond_evidence: bool
    divergent_offsets: dict[str, list[int]]
    leader: int | None
    elections: list[Election]
    acked: int
    notes: list[str] = field(default_factory=list)
    # Where any replica ever held a record that the last leader does not hold there, or a marker.
    gone_offsets: list[int] = field(default_factory=list)
    # Where a later leader was without what any replica had held there; it may be back.
    missed_offsets: list[int] = field(default_factory=list)
    # Offset and leader epoch of each record and marker that any replica ever held where a loss was.
    held: list[list[int]] = field(default_factory=list)

    def lost(self, *acks: str) -> set[int]:
        """Offsets that must be told as lost for good, by what their producers asked for."""
        return {
            one.offset for one in self.losses if one.acks in acks and one.sure and not one.recovered
        }


def save_truths(path: Path, truths: dict[TopicPartition, PartitionTruth]) -> None:
    shown = {f"{topic}-{number}": asdict(truth) for (topic, number), truth in truths.items()}
    path.write_text(json.dumps(shown, indent=1))


def load_truths(path: Path) -> dict[TopicPartition, PartitionTruth]:
    """What `save_truths` wrote: a kept capture can be judged again."""
    found = {}
    for name, fields in json.loads(path.read_text()).items():
        topic, _, number = name.rpartition("-")
        fields["losses"] = [LostRecord(**loss) for loss in fields["losses"]]
        fields["elections"] = [
            Election(**{k: tuple(v) if isinstance(v, list) else v for k, v in one.items()})
            for one in fields["elections"]
        ]
        found[topic, int(number)] = PartitionTruth(**fields)
    return found


@dataclass
class View:
    """All that is known of one partition in one life of its topic.

    `shown`: payload ids that a copy in the evidence has below its high watermark. `finals` are
    the logs at the end, by broker; of an earlier life there are none.
    """

    partition: TopicPartition
    life: Life
    acks: list[dict[str, Any]]
    elections: list[Election]
    starts: list[LeaderStart]
    samples: list[LogSample]
    high_watermarks: list[HighWatermarkSample]
    finals: dict[int, list[dump_tool.Dumped]]
    shown: set[str]
    storage: list[causes.StorageLoss]
    settings: causes.Settings
    excused: set[str] = field(default_factory=set)
    compacted: bool = False
    # What directories hold that were renamed for deletion and are still there.
    set_aside: frozenset[Held] = frozenset()
    orders: "Orders" = field(default_factory=lambda: Orders())
    # Seconds after which records may go by themselves.
    retention: float | None = None

    def in_force(self, since: float, until: float) -> list[causes.Settings]:
        """All settings that may have been in force at any moment of it."""
        changes = [(self.life.begins, self.settings), *self.orders.altered]
        before = [settings for at, settings in changes if at <= since - TAKES_EFFECT]
        meanwhile = [
            settings
            for at, settings in changes
            if since - TAKES_EFFECT < at <= until + TAKES_EFFECT
        ]
        return (before[-1:] or [self.settings]) + meanwhile

    def rules(self) -> Rules:
        version = self.settings.version
        demanded = {
            one.min_insync_replicas for one in self.in_force(self.life.begins, self.life.ends)
        }
        return Rules(
            min(demanded),
            version.at_least(3, 7),
            not version.at_least(3, 6),
            at_most=max(demanded),
        )

    def is_deleted(self, held: Held, since: float) -> bool:
        """Whether an operator ordered the record's deletion."""
        return any(
            held.offset < before_offset and since < at + TAKES_EFFECT
            for at, before_offset in self.orders.deleted
        )

    def is_ordered(self, term: LeaderTerm) -> bool:
        """Whether an operator may have ordered that election, whatever the settings."""
        return any(at - TAKES_EFFECT < term.at < at + TAKES_EFFECT for at in self.orders.elected)


@dataclass(frozen=True)
class Orders:
    """Of an operator, to one partition in one life: settings changed, since when; records deleted,
    when and below which offset; when anybody was to be elected who runs."""

    altered: tuple[tuple[float, causes.Settings], ...] = ()
    deleted: tuple[tuple[float, int], ...] = ()
    elected: tuple[float, ...] = ()


@dataclass
class Run:
    """One experiment that has ended, as it lies on the disk."""

    site: Site
    evidence: Path
    acks: list[dict[str, Any]]
    notes: Notes
    elections: dict[TopicPartition, list[Election]]
    starts: dict[TopicPartition, list[LeaderStart]]
    finals: dict[int, dict[TopicPartition, list[dump_tool.Dumped]]]
    high_watermarks: list[HighWatermarkSample]

    @classmethod
    def read(cls, site: Site, notes: Notes, evidence: Path, acknowledgements: Path) -> "Run":
        return cls(
            site,
            evidence,
            [line for line in read_lines(acknowledgements) if line.get("payload_id")],
            notes,
            elections(site, notes),
            leader_starts(site),
            _final_logs(site),
            [*notes.high_watermarks, *told_high_watermarks(site)],
        )

    def view(self, partition: TopicPartition, life: Life, *, last: bool) -> View:
        topic, number = partition
        actions = self.site.actions()
        made = [one for one in actions if one.get("topic") == topic and "configs" in one]
        configs: dict[str, str] = made[0]["configs"] if made else {}
        compacted = "compact" in configs.get("cleanup.policy", "")
        # What was written just before the order to delete may not have been seen on a disk.
        until = life.ends if last else life.ends - UNSEEN
        acks = [ack for ack in self.acks if _named(ack, partition) and _in_life(ack, life)]
        return View(
            partition,
            life,
            [ack for ack in acks if seconds_of(ack["ts"]) < until],
            [one for one in self.elections.get(partition, []) if life.holds(one.at)],
            [one for one in self.starts.get(partition, []) if life.holds(one.at)],
            self._samples(partition, life),
            [
                one
                for one in self.high_watermarks
                if (one.topic, one.partition) == partition and life.holds(one.written_at)
            ],
            {broker: logs[partition] for broker, logs in self.finals.items() if partition in logs}
            if last
            else {},
            _committed_by_copies(self.evidence, partition),
            causes.storage_losses(actions, number),
            self._settings(configs),
            self._excused(actions, compacted=compacted),
            compacted,
            _set_aside(self.site, partition),
            self._orders(actions, partition, life),
            int(configs["retention.ms"]) / 1000 if "retention.ms" in configs else None,
        )

    def _settings(self, configs: dict[str, str]) -> causes.Settings:
        return causes.Settings(
            self.site.version,
            int(configs.get("min.insync.replicas", 1)),
            configs.get("unclean.leader.election.enable") == "true",
        )

    def _orders(
        self, actions: list[dict[str, Any]], partition: TopicPartition, life: Life
    ) -> Orders:
        topic, number = partition
        own = [
            (seconds_of(one["ts"]), one)
            for one in actions
            if one.get("topic", topic) == topic
            and one.get("partition", number) == number
            and life.holds(seconds_of(one["ts"]))
        ]
        return Orders(
            tuple(
                (at, self._settings(one["configs"]))
                for at, one in own
                if one["action"] == "alter_topic"
            ),
            tuple(
                (at, one["before_offset"]) for at, one in own if one["action"] == "delete_records"
            ),
            tuple(at for at, one in own if one["action"] == "elect_unclean"),
        )

    def _excused(self, actions: list[dict[str, Any]], *, compacted: bool) -> set[str]:
        """What may go: by the scenario; of aborted transactions, where the log is compacted."""
        found = {
            name for one in actions if one["action"] == "excused" for name in one["payload_ids"]
        }
        if compacted:
            found |= {ack["payload_id"] for ack in self.acks if ack["client"] == TRANSACTIONS}
        return found

    def _samples(self, partition: TopicPartition, life: Life) -> list[LogSample]:
        """Without what an earlier life left on a disk whose broker was down meanwhile."""
        own = [one for one in self.notes.logs if (one.topic, one.partition) == partition]
        earlier = {batch for one in own if one.at < life.begins for batch in one.batches}
        found = []
        for one in own:
            if one.at < life.ends:
                held = tuple(batch for batch in one.batches if batch not in earlier)
                if one.at >= life.begins or not earlier:
                    found.append(LogSample(one.at, one.broker, one.topic, one.partition, held))
        return found


def _named(ack: dict[str, Any], partition: TopicPartition) -> bool:
    return (ack["topic"], ack["partition"]) == partition


def _in_life(ack: dict[str, Any], life: Life) -> bool:
    """By the topic id where clients know it, else by the time."""
    if ack.get("topic_id") and life.topic_id:
        return bool(ack["topic_id"] == life.topic_id)
    return life.holds(seconds_of(ack["ts"]))


def establish(run: Run) -> dict[TopicPartition, PartitionTruth]:
    """The truth of every partition; the cluster is stopped, its disks as it left them."""
    found = {}
    for partition in partitions_of(run.site.assignments):
        spans = lives(run.site.actions(), partition[0])
        judged = [judge(run.view(partition, life, last=life is spans[-1])) for life in spans]
        found[partition] = together(judged)
    return found


def together(lived: list[PartitionTruth]) -> PartitionTruth:
    """What is asked about the end is of the last life.

    With a topic go its promises: what an earlier life had lost before may be told or not.
    """
    last = lived[-1]
    verdicts: dict[str, str | None] = {}
    for name, verdict in last.verdicts.items():
        earlier = {one.verdicts[name] for one in lived[:-1]}
        verdicts[name] = None if verdict == HOLDS and earlier - {HOLDS} else verdict
    for one in lived[:-1]:
        one.losses = [replace(loss, sure=False) for loss in one.losses]
    return PartitionTruth(
        verdicts=verdicts,
        losses=[loss for one in lived for loss in one.losses],
        only_beyond_evidence=last.only_beyond_evidence,
        divergent_offsets=last.divergent_offsets,
        leader=last.leader,
        # Epochs of several lives are the same numbers, and the last life goes on while all stops.
        elections=last.elections if len(lived) == 1 else [],
        acked=sum(one.acked for one in lived),
        notes=[note for one in lived for note in one.notes],
        gone_offsets=sorted({offset for one in lived for offset in one.gone_offsets}),
        missed_offsets=sorted({offset for one in lived for offset in one.missed_offsets}),
        held=[held for one in lived for held in one.held],
    )


@dataclass
class Missing:
    """Where a record was not; `at` None: only at the end. `certain` is False at a close call."""

    at: float | None
    term: LeaderTerm
    certain: bool


def judge(view: View) -> PartitionTruth:
    reign = terms(view.elections, view.life.ends)
    replicas = Replicas(view.samples)
    committed = commits(reign, replicas, view.acks, view.high_watermarks, view.rules())
    last = leader_at(view.elections, view.life.ends)
    leader = reign[-1].leader if reign else None
    final = _standing(view, replicas, leader)
    losses, broken, broken_acked = [], set[Held](), set[Held]()
    doubtful, doubtful_acked = False, False
    for record in _to_keep(view, replicas, committed):
        held, sure = record.held, committed.sure.get(record.held)
        since = sure.at if sure is not None else record.since
        if view.is_deleted(held, since):
            continue
        missing = _missing(view, reign, replicas, final, held, since)
        missing = _before_retention(view, missing, final, held, since)
        missing_acked = _missing(view, reign, replicas, final, held, record.since)
        missing_acked = _before_retention(view, missing_acked, final, held, record.since)
        deposed = _deposed_by(view, held, record.since)
        if not missing_acked and record.ack is not None and deposed is not None:
            # The valid leader of that time lacked it, whoever came to lead with it later.
            missing_acked = [Missing(deposed.at, deposed, certain=False)]
        if not missing_acked:
            continue
        if sure is not None and any(one.certain for one in missing):
            broken.add(held)
        elif missing and (sure is not None or held in committed.possible):
            doubtful = True
        if record.ack is not None and any(one.certain for one in missing_acked):
            broken_acked.add(held)
        elif record.ack is not None:
            doubtful_acked = True
        losses.append(_lost(view, replicas, final, record, missing or missing_acked, committed))
    divergent, unsettled = _divergent(view.finals, () if last is None else last.isr)
    notes = [
        f"{held.payload_id} at {held.offset}: {committed.sure[held].by}"
        for held in sorted(broken, key=lambda one: one.offset)
    ]
    verdicts: dict[str, str | None] = {
        "committed_records_survive": _verdict(broken, doubtful),
        "acknowledged_records_survive": _verdict(broken_acked, doubtful_acked),
        "log_matching": VIOLATED if divergent else None if unsettled else HOLDS,
    }
    if unsettled:
        notes.append(f"differs outside the ISR: {unsettled}")
    markers = _markers(view.samples)
    return PartitionTruth(
        verdicts=verdicts,
        losses=sorted(losses, key=lambda one: (one.offset, one.payload_id)),
        only_beyond_evidence=bool(broken)
        and not any(
            committed.sure[held].in_evidence or held.payload_id in view.shown for held in broken
        ),
        divergent_offsets=divergent,
        leader=None if last is None else last.leader,
        elections=view.elections,
        acked=len({ack["payload_id"] for ack in view.acks if ack["status"] == "acked"}),
        notes=notes,
        gone_offsets=sorted(_gone(view, replicas, final) | {offset for offset, _ in markers}),
        missed_offsets=sorted(
            {
                held.offset
                for held in replicas.everything()
                if _missing(view, reign, replicas, final, held, replicas.everywhere_first(held))
            }
        ),
        held=_ever_held(replicas, markers, {one.offset for one in losses}),
    )


def _ever_held(
    replicas: Replicas, markers: set[tuple[int, int]], offsets: set[int]
) -> list[list[int]]:
    """Offset and leader epoch of all that any replica was ever seen with at some offsets."""
    records = {
        (held.offset, held.leader_epoch)
        for held in replicas.everything()
        if held.leader_epoch is not None
    }
    return [list(one) for one in sorted(records | markers) if one[0] in offsets]


def _gone(view: View, replicas: Replicas, final: frozenset[Held]) -> set[int]:
    """Where anything was written that the last leader does not hold there."""
    standing = {(one.offset, one.payload_id) for one in final}
    return {offset for offset, name in _written(view, replicas) if (offset, name) not in standing}


def _written(view: View, replicas: Replicas) -> set[tuple[int, str]]:
    """Offset and name of what any replica was seen with, and of what a leader said that it wrote:
    that may come and go between two looks."""
    seen = {(held.offset, held.payload_id) for held in replicas.everything()}
    told = {
        (ack["offset"], ack["payload_id"])
        for ack in view.acks
        if ack["status"] == "acked" and ack["offset"] is not None
    }
    return seen | told


def _markers(samples: list[LogSample]) -> set[tuple[int, int]]:
    """Where any replica ever held a transaction marker, which may be told as gone, and of which
    leader epoch."""
    batches = {batch for sample in samples for batch in sample.batches}
    return {marker for batch in batches for marker in markers_in(batch)}


def _verdict(broken: set[Held], doubtful: bool) -> str | None:
    return VIOLATED if broken else None if doubtful else HOLDS


def _standing(view: View, replicas: Replicas, leader: int | None) -> frozenset[Held]:
    """What the last leader holds at the end."""
    if leader is None:
        return frozenset()
    if view.finals:
        return frozenset(
            Held(one.offset, one.leader_epoch, one.payload_id, one.key)
            for one in view.finals.get(leader, [])
        )
    return replicas.at(leader, view.life.ends)


@dataclass(frozen=True)
class ToKeep:
    """A record that must not go: a copy, since when, and its acknowledgement if it has one."""

    held: Held
    since: float
    ack: dict[str, Any] | None


def _to_keep(view: View, replicas: Replicas, committed: Commits) -> Iterable[ToKeep]:
    """Of an acknowledged record that was appended several times any copy will do."""
    everything = replicas.everything()
    told: set[str] = set()
    for ack in view.acks:
        if ack["status"] != "acked" or ack["payload_id"] in told | view.excused:
            continue
        told.add(ack["payload_id"])
        found = sorted(copies(everything, ack), key=lambda one: (one not in committed.sure,))
        if not found:
            found = [Held(ack["offset"] or 0, None, ack["payload_id"], ack["payload_id"])]
        since = seconds_of(ack["ts"])
        if found[0] in committed.sure:
            since = min(since, committed.sure[found[0]].at)
        yield ToKeep(found[0], since, ack)
    for held in sorted(committed.sure.keys() | committed.possible, key=lambda one: one.offset):
        if held.payload_id not in told | view.excused:
            yield ToKeep(held, replicas.everywhere_first(held), None)


def _missing(
    view: View,
    reign: list[LeaderTerm],
    replicas: Replicas,
    final: frozenset[Held],
    held: Held,
    since: float,
) -> list[Missing]:
    found = []
    for term in reign:
        for at in reigns(term, view.starts):
            if at <= since - CLOCK_SLACK:
                continue
            certain = _lacks(view, replicas, term, held, at)
            if certain is not None:
                later = at > since + CLOCK_SLACK and took_up(term, view.starts)
                found.append(Missing(at, term, certain and later))
    gone = held.payload_id not in payload_ids(final)
    compacted_away = (
        gone
        and view.compacted
        and _superseded(final, held)
        and any(held in replicas.line(term) for term in reign if term.until > since)
    )
    if reign and gone and not compacted_away:
        last = _last_term_with(view, replicas, held)
        found.append(Missing(None, last or term_at(reign, since) or reign[-1], certain=True))
    return found


def _before_retention(
    view: View, misses: list[Missing], final: frozenset[Held], held: Held, since: float
) -> list[Missing]:
    """Below the last log start, where it was missing before its age allowed that: nobody need call
    it lost there."""
    log_start = min((one.offset for one in final), default=held.offset + 1)
    if view.retention is None or held.offset >= log_start:
        return misses
    young = since + view.retention - OLDER
    return [
        replace(one, certain=False)
        for one in misses
        if (view.life.ends if one.at is None else one.at) < young
    ]


def _last_term_with(view: View, replicas: Replicas, held: Held) -> LeaderTerm | None:
    """The last term, if its leader had the record in it, or answered for one that came and went
    between two looks: its disk lost it, and nobody led after."""
    last = terms(view.elections, view.life.ends)[-1]
    answered = any(
        ack["status"] == "acked"
        and (ack["broker"], ack["payload_id"]) == (last.leader, held.payload_id)
        and seconds_of(ack["ts"]) > last.at + CLOCK_SLACK
        for ack in view.acks
    )
    return last if answered or held in replicas.line(last) else None


def _lacks(view: View, replicas: Replicas, term: LeaderTerm, held: Held, at: float) -> bool | None:
    """Whether the leader was without the record as it took up leadership; None: it had it."""
    before, after = replicas.around(term.leader, at, term.until)
    if held in replicas.held_within(term.leader, at, term.until) or held in after:
        return None
    if view.compacted and _superseded(_before_term(before | after, before, term), held):
        return None
    in_before, in_after = (held.payload_id in payload_ids(log) for log in (before, after))
    if in_after or in_before:
        return None if in_after else False
    # Where nobody looked in time, the first look afterwards shows it again, or not; a log that did
    # not change any more was looked at when the run was over.
    looked = replicas.next_after(term.leader, at)
    if looked is not None:
        return held not in looked
    final = view.finals.get(term.leader)
    return final is not None and not _is_named((held.offset, held.payload_id), final)


def _before_term(log: frozenset[Held], seen: frozenset[Held], term: LeaderTerm) -> set[Held]:
    """What the leader had when it took over: not what it wrote itself, however soon."""
    return {
        one
        for one in log
        if one in seen or (one.leader_epoch is not None and one.leader_epoch < term.leader_epoch)
    }


def _superseded(log: Iterable[Held], held: Held) -> bool:
    """Whether compaction may take it: the log goes on with another value for its key, and not with
    what an earlier leader had written there."""
    return any(
        one.key == held.key
        and one.offset > held.offset
        and (one.leader_epoch is None or one.leader_epoch >= (held.leader_epoch or 0))
        for one in log
    )


def _lost(
    view: View,
    replicas: Replicas,
    final: frozenset[Held],
    record: ToKeep,
    misses: list[Missing],
    committed: Commits,
) -> LostRecord:
    held, since, ack = record.held, record.since, record.ack
    missing = _unclean_at_first(misses, next((one for one in misses if one.certain), misses[0]))
    sure = committed.sure.get(held)
    by_then = sure is not None and (missing.at is None or sure.at <= missing.at)
    told = by_then or (ack is not None and ack["acks"] == "all")
    promises = {told} | ({True} if held in committed.possible else set())
    # Where an earlier leader may have lacked it already, either is right.
    earlier = misses[: misses.index(missing)] if missing in misses else []
    possible = [missing, *(one for one in earlier if not one.certain)]
    # What a deposed leader still took is missing since before it was written, unless it led again.
    deposed = _deposed_by(view, held, since)
    if deposed is not None and not _led_between(view, replicas, held, deposed, missing):
        missing = Missing(deposed.at, deposed, missing.certain)
        possible = [missing]
    whys = [
        why
        for one in possible
        for promised in promises
        for why in _whys(view, replicas, held, since, one, promised=promised)
    ]
    named = (held.offset, held.payload_id)
    recovered = held.payload_id in payload_ids(final) or (
        view.compacted and _was_back(view, replicas, misses, held)
    )
    elsewhere = any(_is_named(named, log) for log in view.finals.values())
    statuses = {"recovered"} if recovered else set[str]()
    if not recovered or not _is_named(named, final):
        # What its producer wrote once more may be called back, or gone from where it was.
        statuses.add("recoverable" if elsewhere else "lost")
        statuses |= {"recoverable"} if _is_named(named, view.set_aside) else set()
    where = "at the end" if missing.at is None else f"leader {missing.term.leader} in epoch "
    return LostRecord(
        payload_id=held.payload_id,
        offset=held.offset,
        acks=UNTOLD if ack is None else ack["acks"],
        sure=missing.certain and (ack is not None or sure is not None),
        committed=sure is not None,
        recovered=recovered,
        causes=sorted(set().union(*(why.causes for why in whys))),
        contracts=sorted(set().union(*(why.contracts for why in whys))),
        statuses=sorted(statuses),
        missing_from=where if missing.at is None else f"{where}{missing.term.leader_epoch}",
        leader_epoch=held.leader_epoch,
    )


def _whys(
    view: View, replicas: Replicas, held: Held, since: float, missing: Missing, *, promised: bool
) -> list[causes.Why]:
    """Why it was missing there, by all settings that may have been in force."""
    at = missing.term.at if missing.at is None else missing.at
    if missing.at is None and missing.term == _last_term_with(view, replicas, held):
        at = view.life.ends
    again = at > first_start(missing.term, view.starts)
    return [
        causes.why(
            causes.Loss(held, since, at, missing.term, promised, again),
            replicas,
            view.storage,
            replace(settings, unclean=unclean),
        )
        for settings in view.in_force(since, at)
        for unclean in _permits(view, missing.term, at)
    ]


def _permits(view: View, term: LeaderTerm, at: float) -> set[bool]:
    """Whether an unclean election was permitted then, by the settings or by whoever ordered it."""
    return {one.unclean for one in view.in_force(at, at)} | (
        {True, False} if view.is_ordered(term) else set()
    )


def _unclean_at_first(misses: list[Missing], found: Missing) -> Missing:
    """The unclean election of the leader that lacked it, where it led only later, elected anew from
    the ISR that this election had made of it alone."""
    before = misses[: misses.index(found)]
    made = [one for one in before if one.term.leader == found.term.leader and one.term.unclean]
    alone = found.term.before is not None and found.term.before.isr == (found.term.leader,)
    if not made or not alone or found.term.unclean:
        return found
    return replace(found, at=made[-1].at, term=made[-1].term)


def _is_named(named: tuple[int, str], log: Iterable[Held | dump_tool.Dumped]) -> bool:
    """Whether a log has the record of that offset and payload id."""
    return any((one.offset, one.payload_id) == named for one in log)


def _deposed_by(view: View, held: Held, since: float) -> LeaderTerm | None:
    """The term of another leader that had begun before its writer was known to have it."""
    reign = terms(view.elections, view.life.ends)
    own = [place for place, term in enumerate(reign) if term.leader_epoch == held.leader_epoch]
    later = (
        [term for term in reign[own[-1] :] if term.leader != reign[own[-1]].leader] if own else []
    )
    return later[0] if later and later[0].at + CLOCK_SLACK < since else None


def _led_between(
    view: View, replicas: Replicas, held: Held, deposed: LeaderTerm, missing: Missing
) -> bool:
    """Whether a leader had it after its writer was deposed, before it was missing at last."""
    return missing.at is not None and any(
        deposed.at < term.at < missing.at and held in replicas.line(term)
        for term in terms(view.elections, view.life.ends)
    )


def _was_back(view: View, replicas: Replicas, misses: list[Missing], held: Held) -> bool:
    """Whether a later leader had it again, before compaction took it for good."""
    last = max((one.at for one in misses if one.at is not None), default=None)
    return last is not None and any(
        held in replicas.line(term)
        for term in terms(view.elections, view.life.ends)
        if term.at > last
    )


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A JSON Lines file; nothing where the experiment wrote none."""
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _set_aside(site: Site, partition: TopicPartition) -> frozenset[Held]:
    """The records of directories that a broker renamed, to delete them later, and has still."""
    return frozenset(
        held
        for broker in site.brokers
        for directory in site.data(broker)
        for place in directory.glob(f"{partition[0]}-{partition[1]}.*")
        for batch in read_batches(place)
        for held in records(batch)
    )


def _final_logs(site: Site) -> dict[int, dict[TopicPartition, list[dump_tool.Dumped]]]:
    """The logs as kafka-dump-log reads them, held against kafka-python's reading."""
    places = {
        (broker, (topic, partition)): directory / f"{topic}-{partition}"
        for broker in site.brokers
        for directory in site.data(broker)
        for topic, partition in partitions_of(site.assignments)
        if (directory / f"{topic}-{partition}").is_dir()
    }
    files = [path for place in places.values() for path in segment_files(place)]
    dumped = dump_tool.dump_segments(site.version, files)
    found: dict[int, dict[TopicPartition, list[dump_tool.Dumped]]] = {}
    for (broker, partition), place in places.items():
        log = [one for path in segment_files(place) for one in dumped[path]]
        by_tool = [(one.offset, one.leader_epoch, one.payload_id) for one in log]
        by_library = [
            (held.offset, held.leader_epoch, held.payload_id)
            for batch in read_batches(place)
            for held in records(batch)
        ]
        if by_tool != by_library:
            raise AssertionError(f"{place}: kafka-dump-log and kafka-python read different logs")
        found.setdefault(broker, {})[partition] = log
    return found


def _divergent(
    finals: dict[int, list[dump_tool.Dumped]], isr: tuple[int, ...]
) -> tuple[dict[str, list[int]], dict[str, list[int]]]:
    """Offsets with different records: of two members of the last ISR, and of other pairs."""
    settled: dict[str, list[int]] = {}
    open_still: dict[str, list[int]] = {}
    brokers = sorted(finals)
    for index, first in enumerate(brokers):
        for second in brokers[index + 1 :]:
            one = {dumped.offset: dumped for dumped in finals[first]}
            other = {dumped.offset: dumped for dumped in finals[second]}
            differing = sorted(
                offset
                for offset in one.keys() & other.keys()
                if (one[offset].payload_id, one[offset].key)
                != (other[offset].payload_id, other[offset].key)
            )
            if differing:
                where = settled if {first, second} <= set(isr) else open_still
                where[f"{first},{second}"] = differing
    return settled, open_still


def _committed_by_copies(evidence: Path, partition: TopicPartition) -> set[str]:
    """Payload ids that copies in the evidence have below their own high watermark."""
    found = set()
    for path in sorted(evidence.rglob(HIGH_WATERMARK_FILE)):
        high_watermark = checkpoint_entries(path).get(partition)
        place = path.parent / f"{partition[0]}-{partition[1]}"
        if high_watermark is None or not place.is_dir():
            continue
        for batch in read_batches(place):
            for held in records(batch):
                if held.offset < high_watermark:
                    found.add(held.payload_id)
    return found

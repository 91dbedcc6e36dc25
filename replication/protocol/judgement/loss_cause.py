"""Why records are gone: the earliest step without which they survive, and what else contributed."""

from replication.protocol.ground.topic_partition import State, Term
from replication.protocol.ground.versions import behaviour
from replication.protocol.judgement.absence import Absence
from replication.protocol.judgement.lacking_terms import led_on_after
from replication.protocol.judgement.unseen_terms import truncates_to_high_watermark

UNCLEAN = ("unclean", "last_known_leader")


def cause_of(
    state: State, first: int, end: int, term: Term | None, tier: str, absences: list[Absence]
) -> tuple[str, tuple[str, ...]]:
    """The cause and the contributing causes of the loss of offsets [first, end).

    term: the first later term that lacked them, None where no term's start shows it.
    """
    term = term or _term_by_time(state, first, absences)
    unclean = term is not None and term.election_kind in UNCLEAN
    leader = term.leader if term is not None else state.registration.leader
    if leader is not None and _came_back_short(state, leader, first, term):
        contributing = ("unclean_election",) if unclean else ()
        if _last_one_standing(state, leader, term):
            return "last_replica_standing", ("storage_loss", *contributing)
        return "storage_loss", contributing
    if unclean:
        return "unclean_election", ()
    cut = _cut_by(state, leader, first, term)
    if cut == "high_watermark":
        return "truncate_to_high_watermark", ()
    if cut == "out_of_range":
        return "out_of_range_reset", ()
    if tier == "acknowledged_by_leader":
        return "acks_one_failover", ()
    if term is None and cut is not None:
        return "divergence_overwrite", ()
    if _leader_missed_a_term(state, first, end, term):
        return "premature_high_watermark", ()
    return _by_known_defect(state, leader, term), ()


def _term_by_time(state: State, first: int, absences: list[Absence]) -> Term | None:
    """For records whose epoch is unknown: the first change of leader after the promise was made,
    among those that could lose it. Clocks decide only between several.

    Only the cause rests on it, never the verdict.
    """
    terms = state.history.terms
    could = [t for t in terms if t.start_offset is None or t.start_offset <= first]
    changes = [t for t in could if t is not terms[0]]
    if len(changes) == 1 and changes[0].start_offset is not None:
        return changes[0]
    made = [a.promise.observed_at for a in absences if a.promise.observed_at is not None]
    if not made:
        return None
    return next((t for t in could if t.observed_at is not None and t.observed_at > min(made)), None)


def _came_back_short(state: State, leader: int, first: int, term: Term | None) -> bool:
    """Whether the leader once held the offset and lost it from its disk before it led.

    Its log cut by a truncation rule on the way is not storage loss.
    """
    for loss in state.history.storage_losses:
        if loss.replica == leader and loss.left_end_offset <= first < loss.had_end_offset:
            if term is None or loss.leader_epoch is None:
                return True
            if loss.leader_epoch <= term.leader_epoch:
                return True
    return False


def _last_one_standing(state: State, leader: int, term: Term | None) -> bool:
    """min.insync.replicas of at least 2 and an ISR below it when the leader was lost."""
    needed = state.settings.min_insync_replicas
    if needed is None or needed < 2 or term is None:
        return False
    return any(i is not None and len(i) < needed for i in (term.isr_before, term.isr))


def _cut_by(state: State, leader: int | None, first: int, term: Term | None) -> str | None:
    """The reason of the last truncation by which the leader lost the offset."""
    for cut in reversed(state.history.truncations):
        if cut.replica != leader or cut.to_offset > first:
            continue
        if cut.from_offset is not None and cut.from_offset <= first:
            continue
        if term is not None and cut.term_epoch is not None and cut.term_epoch > term.leader_epoch:
            continue
        if cut.reason == "unknown" and truncates_to_high_watermark(state):
            return "high_watermark"
        return cut.reason
    return None


def _leader_missed_a_term(state: State, first: int, end: int, term: Term | None) -> bool:
    """Whether a leader slept through a term that lacked the records, and led on with them.

    It still counts its followers at the log ends that they had before that term
    (Partition.makeLeader forgets them for a new leader only), and commits what they have cut since.
    """
    for missed in state.history.terms:
        again = led_on_after(state, missed, first, end)
        if again is not None:
            return term is None or term is missed or again.order < term.order
    return False


def _by_known_defect(state: State, leader: int | None, term: Term | None) -> str:
    """Causes that only a version's known defect leaves: KAFKA-7128 and KAFKA-13141."""
    settings = state.settings
    if term is None or settings.kafka_version is None or leader is None:
        return "unknown"
    if term.election_kind not in ("clean", "preferred"):
        return "unknown"
    try:
        flags = behaviour(settings.kafka_version, settings.inter_broker_version)
    except ValueError:
        return "unknown"
    if flags.has("leader_answers_diverging_epoch") and not flags.has(
        "diverging_fetch_is_no_progress"
    ):
        return "premature_high_watermark"
    if flags.has("truncates_to_leader_end_offset") and not flags.has(
        "isr_expansion_waits_for_epoch_start"
    ):
        return "early_isr_join"
    return "unknown"


def contract_of(state: State, cause: str, tier: str, first: int) -> str:
    """Whether Kafka had promised to keep the records: broken, not_promised or unknown."""
    if tier == "acknowledged_by_leader":
        return "not_promised"
    settings = state.settings
    if cause == "unclean_election":
        if settings.unclean_leader_election is None:
            return "unknown"
        return "not_promised" if settings.unclean_leader_election else "broken"
    if cause in ("storage_loss", "last_replica_standing"):
        if settings.min_insync_replicas is None:
            return "unknown"
        lossy = {
            s.replica
            for s in state.history.storage_losses
            if s.left_end_offset <= first < s.had_end_offset
        }
        return "not_promised" if len(lossy) >= settings.min_insync_replicas else "broken"
    if cause == "unknown":
        return "unknown"
    return "broken"

"""The answer of `whatif`: of each loss, whether it had been one if things had been otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from replication.foresight.interventions import (
    Intervention,
    as_it_was,
    is_as_it_was,
    otherwise,
)
from replication.foresight.retelling import Pair, Retelling
from replication.foresight.script import (
    CannotTell,
    Script,
    TooManyStories,
    Write,
    script_of,
    with_early_ends,
)
from replication.foresight.telling import Telling, fate
from replication.protocol.ground.events import Event

FORMAT_VERSION = 1
NOT_LOST, STILL_LOST, DEPENDS, NOT_TOLD = "not_lost", "still_lost", "depends", "not_told"
# Exit statuses, in the sense of the other commands.
ALL_SAVED, SOME_LOST, SOME_NOT_TOLD = 0, 1, 3
Loss = dict[str, Any]
MOST_STORIES = 32
NEXT_ELECTION = (
    "nobody leads at the end, and whoever has the records may lead by an unclean election alone"
)


@dataclass(slots=True)
class Verdict:
    """What became of one loss. histories: two that differ, the steps of each; step: the first in
    which they do; answered: whether some history answers for it; because: why it is not told."""

    answer: str
    histories: tuple[tuple[str, ...], tuple[str, ...]] | None = None
    step: str | None = None
    answered: bool = True
    because: str | None = None


@dataclass(slots=True)
class Column:
    """One intervention at one partition. refused: records that were answered for and would not have
    been, at least and at most; leaderless, was_leaderless: ms in which nobody led; as_it_was: all
    that the intervention names was so."""

    intervention: Intervention
    verdicts: list[Verdict] = field(default_factory=list)
    stories: int = 0
    refused: tuple[int, int] = (0, 0)
    leaderless: tuple[int, int] = (0, 0)
    was_leaderless: tuple[int, int] = (0, 0)
    as_it_was: bool = False


def ask(
    events: Sequence[Event], losses: list[Loss], interventions: list[Intervention]
) -> list[Column]:
    """Every intervention at one partition. losses: its rows of the ledger."""
    try:
        script, stories = _with_stories(script_of(events), losses)
    except CannotTell as error:
        return [_not_told(intervention, losses, error) for intervention in interventions]
    columns = []
    for intervention in interventions:
        try:
            pairs = _pairs(script, intervention, stories)
        except CannotTell as error:
            columns.append(_not_told(intervention, losses, error))
            continue
        columns.append(_column(script, intervention, losses, pairs))
    return columns


def _not_told(intervention: Intervention, losses: list[Loss], error: CannotTell) -> Column:
    return Column(intervention, [Verdict(NOT_TOLD, because=str(error)) for _ in losses])


def _with_stories(script: Script, losses: list[Loss]) -> tuple[Script, list[tuple[str, ...]]]:
    """The script and its stories: with crashes as early as all that is told has them; where no
    story fits that, followers' as late as can be, then leaders'. Raises CannotTell."""
    early = [with_early_ends(script), with_early_ends(script, followers=False)]
    for one in early:
        try:
            return one, _stories(one, losses)
        except TooManyStories:
            raise  # With ends that are left open there are no fewer.
        except CannotTell:
            continue
    return script, _stories(script, losses)


def _stories(script: Script, losses: list[Loss]) -> list[tuple[str, ...]]:
    """What was done in the stories that answer and lose as the evidence says; of many, some that
    differ."""
    answered = {w.number for w in script.writes if w.acks is not None}
    found = sorted(
        pair.told.done
        for pair in Retelling(script, as_it_was(script)).pairs()
        if answered <= pair.told.acked and all(_is_lost(pair.told, script, x) for x in losses)
    )
    if not found:
        raise CannotTell(
            "no course of events by Kafka's rules loses what is lost here: the evidence lacks a "
            "step, or the model of Kafka does"
        )
    if len(found) <= MOST_STORIES:
        return found
    return [found[n * len(found) // MOST_STORIES] for n in range(MOST_STORIES)]


def _pairs(
    script: Script, intervention: Intervention, stories: list[tuple[str, ...]]
) -> list[Pair]:
    """Each of the stories beside what becomes of it otherwise."""
    was, other = as_it_was(script), otherwise(script, intervention)
    return [
        pair
        for story in stories
        for pair in Retelling(script, was, other, story).pairs()
        if pair.told.done == story
    ]


def _column(
    script: Script, intervention: Intervention, losses: list[Loss], pairs: list[Pair]
) -> Column:
    refused = [_refused(script, pair) for pair in pairs]
    after = [pair.otherwise.leaderless for pair in pairs]
    before = [pair.told.leaderless for pair in pairs]
    return Column(
        intervention,
        [_verdict(script, loss, pairs, intervention.not_restarted) for loss in losses],
        len(pairs),
        (min(refused), max(refused)),
        (min(after), max(after)),
        (min(before), max(before)),
        is_as_it_was(script, intervention),
    )


def _refused(script: Script, pair: Pair) -> int:
    gone = pair.told.acked - pair.otherwise.acked
    return sum(w.end - w.first for w in script.writes if w.number in gone)


def _verdict(script: Script, loss: Loss, pairs: list[Pair], down: frozenset[int]) -> Verdict:
    fates = [_fate(pair.otherwise, script, loss, down) for pair in pairs]
    kept, lost, is_open = (
        [p for p, f in zip(pairs, fates, strict=True) if f == one]
        for one in ("kept", "lost", "open")
    )
    writes = _writes(script, loss)
    answered = any(_is_promised(p.otherwise, w, loss) for p in kept for w in writes)
    if not kept and not is_open:
        return Verdict(STILL_LOST)
    if not lost and not is_open:
        return Verdict(NOT_LOST, answered=answered)
    if not kept or not lost:
        one = is_open[0].otherwise.done
        return Verdict(DEPENDS, (one, (lost or is_open)[0].otherwise.done), NEXT_ELECTION, answered)
    a, b, step = _nearest(kept, lost)
    return Verdict(DEPENDS, (a.done, b.done), step, answered)


def _nearest(kept: list[Pair], lost: list[Pair]) -> tuple[Telling, Telling, str]:
    """Two tellings of which one loses the record, that part as late as any; and where."""
    best: tuple[int, Telling, Telling] | None = None
    for a in kept[:50]:
        for b in lost[:50]:
            same = _same_steps(a.otherwise.done, b.otherwise.done)
            if best is None or same > best[0]:
                best = (same, a.otherwise, b.otherwise)
    assert best is not None
    same, one, other = best
    steps = [t.done[same] if same < len(t.done) else "nothing more" for t in (one, other)]
    return one, other, f"{steps[0]} (kept), or {steps[1]} (lost)"


def _same_steps(one: Sequence[str], other: Sequence[str]) -> int:
    count = 0
    for a, b in zip(one, other, strict=False):
        if a != b:
            break
        count += 1
    return count


def _writes(script: Script, loss: Loss) -> list[Write]:
    """The writes that a row of the ledger speaks of."""
    first, end = loss["first_offset"], loss["end_offset"]
    found = [w for w in script.writes if w.first < end and w.end > first]
    for name in ("leader_epoch", "content"):
        said = loss.get(name)
        if said is not None:
            same = [w for w in found if getattr(w, name) in (None, said)]
            found = same or found
    if not found:
        raise CannotTell(f"nothing tells who wrote the lost record at offset {first}")
    return found


def _is_promised(telling: Telling, write: Write, loss: Loss) -> bool:
    by_answer = loss["tier"].startswith("acknowledged")
    return write.number in (telling.acked if by_answer else telling.committed)


def _fate(telling: Telling, script: Script, loss: Loss, down: frozenset[int] = frozenset()) -> str:
    """kept, lost or open: the worst of the writes that were promised. down: who stays down."""
    fates = {
        fate(telling, w, down) for w in _writes(script, loss) if _is_promised(telling, w, loss)
    }
    return next((f for f in ("lost", "open") if f in fates), "kept")


def _is_lost(telling: Telling, script: Script, loss: Loss) -> bool:
    return _fate(telling, script, loss) != "kept"


def as_json(
    partitions: list[tuple[Loss, list[Loss], list[Column]]], undecided: int, as_seen: int
) -> dict[str, Any]:
    """The whole answer: a row for each loss, under each intervention. undecided: in how many
    partitions it is not decided whether anything (more) is lost; as_seen: in how many that nothing
    is rests on it that no record vanished without a trace."""
    rows = []
    for identity, losses, columns in partitions:
        for number, loss in enumerate(losses):
            rows.append(
                {
                    **identity,
                    "first_offset": loss["first_offset"],
                    "end_offset": loss["end_offset"],
                    "leader_epoch": loss["leader_epoch"],
                    "tier": loss["tier"],
                    "cause": loss["cause"],
                    "if": [_cell(column, column.verdicts[number]) for column in columns],
                }
            )
    return {
        "format_version": FORMAT_VERSION,
        "losses": rows,
        "partitions_undecided": undecided,
        "partitions_as_seen": as_seen,
    }


def _cell(column: Column, verdict: Verdict) -> dict[str, Any]:
    histories = verdict.histories
    return {
        "set": column.intervention.text,
        "answer": verdict.answer,
        "answered": verdict.answered,
        "as_it_was": column.as_it_was,
        "stories": column.stories,
        "depends_on": verdict.step,
        "kept_in": None if histories is None else list(histories[0]),
        "lost_in": None if histories is None else list(histories[1]),
        "records_refused": list(column.refused),
        "leaderless_ms": list(column.leaderless),
        "was_leaderless_ms": list(column.was_leaderless),
        "because": verdict.because,
    }


def exit_status(partitions: list[tuple[Loss, list[Loss], list[Column]]], undecided: int) -> int:
    """0 each loss is none under some intervention; 1 one is under all; 3 one could not be told;
    also where all are none, and there may be more in so many undecided partitions."""
    status = ALL_SAVED
    for _, losses, columns in partitions:
        for number in range(len(losses)):
            answers = {column.verdicts[number].answer for column in columns}
            if NOT_LOST in answers:
                continue
            if answers == {NOT_TOLD}:
                status = max(status, SOME_NOT_TOLD)
            elif status != SOME_NOT_TOLD:
                status = SOME_LOST
    return SOME_NOT_TOLD if undecided and status == ALL_SAVED else status

"""What a leader may do unseen: append, commit, and, where its lines are missing, restart."""

from collections.abc import Callable, Iterator

from replication.protocol.histories.moves.states import Broker, Leading


def unseen_moves(
    by: Broker, at: Leading, writable: Callable[[Leading], list[int]], *, kraft: bool
) -> Iterator[Leading]:
    """What a leader may do by itself before its next own step. writable: the records that it may
    append. kraft: a restart costs it the leadership."""
    if at.role and not by.traced:
        if not at.record:
            for record in writable(at):
                after = wrote(at, record)
                yield _commits_alone(after, record) if by.always_alone else after
        elif not at.above:
            yield committed(at)
    if by.covered:
        return
    restarts = at.record and by.unseen_losses != 0
    if restarts and not any(kind == "away" for kind, _ in at.steps):
        mark = by.lost(at.record)
        if not (mark and at.lost):
            yield at._replace(
                role=False, record=0, above=0, steps=(*at.steps, ("away", 0)), lost=at.lost | mark
            )
    if not at.role and not kraft and at.steps and at.steps[-1][0] == "away":
        yield at._replace(
            role=True,
            occurrence=at.occurrence + 1,
            above=0,
            exposed=at.exposed | {(at.record, 0)},
            steps=(*at.steps, ("began", at.record)),
        )


def wrote(at: Leading, record: int) -> Leading:
    """After its leader appended a record."""
    return at._replace(
        record=record,
        appended=at.appended | 1 << record,
        exposed=at.exposed | {(record, at.above)},
        steps=(*at.steps, ("appended", record)),
    )


def committed(at: Leading) -> Leading:
    """After its high watermark rose above its record."""
    return at._replace(
        above=1,
        ever=1,
        exposed=at.exposed | {(at.record, 1)},
        steps=(*at.steps, ("committed", at.record)),
    )


def _commits_alone(at: Leading, record: int) -> Leading:
    """A leader that is alone in its ISR commits as it appends."""
    return at._replace(
        above=1,
        ever=1,
        exposed=(at.exposed - {(record, 0)}) | {(record, 1)},
        steps=(*at.steps, ("committed_alone", record)),
    )


def seen_of(steps: tuple[tuple[str, int], ...]) -> tuple[tuple[str, int], ...]:
    """The steps of a leader that others can hear about."""
    return tuple(step for step in steps if step[0] != "away")

"""What is known besides of brokers of which the caller says that they are down."""

from dataclasses import replace

from replication.protocol.ground.story import OwnStep
from replication.protocol.ground.topic_partition import State


def copies_of_the_stopped(state: State, down: frozenset[int]) -> None:
    """Takes the newest copy of a broker's directory for one of a broker that had stopped: then it
    shows the whole log that the broker comes back with. Not where its lines go on after the copy.
    A copy without the file of a clean stop is of a broker that crashed: it is no eligible leader
    replica any more once it is back (KIP-966). Of one without a copy nobody knows what is left.
    """
    for number in down:
        own = state.story.own.get(number, [])
        place = _newest_copy(own)
        if not any(step.kind == "copy" for step in own):
            state.story.unseen.add(number)
        if place is not None:
            copy = own[place]
            if copy.clean is not True:
                if number in state.replicas:
                    state.replicas[number].crashed = True
                # It comes back with what the copy shows, and may have lost what was after that.
                back = OwnStep("started", copy.event_id, log_end_offset=copy.log_end_offset)
                own.insert(place, back)
                place += 1
            own[place] = replace(copy, clean=True)


def perhaps_running(state: State) -> list[int]:
    """The brokers whose directory may have been copied while they ran: nothing tells that the copy
    shows the end of the log."""
    found = []
    for number, own in sorted(state.story.own.items()):
        place = _newest_copy(own)
        if place is not None and own[place].clean is not True:
            found.append(number)
    return found


def _newest_copy(own: list[OwnStep]) -> int | None:
    """The place of the copy of a whole log after which only the broker's checkpoint files say
    anything about it."""
    for place in range(len(own) - 1, -1, -1):
        if own[place].kind == "copy" and own[place].kind_of_copy != "part":
            return place
        if own[place].kind != "checkpoint":
            return None
    return None

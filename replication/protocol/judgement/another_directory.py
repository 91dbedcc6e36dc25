"""Leaders that the controllers gave another log directory while they were in sync."""

from replication.protocol.ground.verdict import Verdict, unknown
from replication.protocol.judgement.reference import log_is_covered
from replication.protocol.judgement.view import View


def led_from_another_directory(view: View, name: str) -> Verdict | None:
    """UNKNOWN where the lines of such a leader are missing: back from its stop before it is fenced
    it leads on in its epoch, without what lay in its former directory."""
    state = view.state
    for broker in sorted({t.leader for t in state.history.terms}):
        if state.told_of("same_directory", broker) and not log_is_covered(state, broker):
            where = state.why_missing("same_directory", broker)
            return unknown(
                name,
                f"broker {broker} got another log directory while it was in sync ({where}), and "
                "nothing tells whether it led without what it had before",
                [f"the broker log of broker {broker}"],
            )
    return None

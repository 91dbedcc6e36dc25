"""Lines by the incarnation that they are about: told by ids, by order, and else by the clock."""

from replication.evidence.joining.broker_lines import lines_by_broker
from replication.evidence.joining.lifetimes import Incarnations
from replication.evidence.joining.lines_by_incarnation import lines_by_incarnation
from replication.evidence.joining.lives_side_by_side import lives_of_topic
from replication.evidence.joining.one_cluster import Key
from replication.evidence.joining.topic_lives import Lifetime, stretches
from tests.evidence.joining.lines import line, log

TWO: list[Lifetime] = [("a", None, 20), ("b", 20, None)]
LINES = (line("became_leader", at=5, number=1), line("became_follower", at=25, number=2))


def kinds(incarnations: Incarnations, *printed: str) -> dict[Key, list[str]]:
    mine = log(1, *LINES, in_lines={(None, "t", topic_id) for topic_id in printed})
    found = lines_by_incarnation(1, lines_by_broker([mine])[1], incarnations)
    return {key: [fact.kind for lines in packed for fact in lines] for key, packed in found.items()}


def test_one_incarnation_has_all_lines() -> None:
    both = ["became_leader", "became_follower"]
    assert kinds(Incarnations()) == {("t", "", 0): both}
    assert kinds(Incarnations({"t": [("a", None, None)]})) == {("t", "a", 0): both}
    # A broker that printed one id only was there for that one only.
    assert kinds(Incarnations({"t": TWO}), "b") == {("t", "b", 0): both}


def test_where_no_line_prints_an_id_the_clock_tells() -> None:
    apart = {("t", "a", 0): ["became_leader"], ("t", "b", 0): ["became_follower"]}
    assert kinds(Incarnations({"t": TWO})) == apart


def test_lives_that_the_lines_show_keep_their_own_stretches() -> None:
    first, second = (stretches([fact]) for fact in LINES)
    (old,), (new,) = lives_of_topic({1: first}), lives_of_topic({1: second})
    old.topic_id, new.topic_id = "x", "y"
    apart = {("t", "x", 0): ["became_leader"], ("t", "y", 0): ["became_follower"]}
    assert kinds(Incarnations({"t": TWO}, {"t": [old, new]})) == apart

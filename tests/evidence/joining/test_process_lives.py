"""What each life of a broker's process prints, across an upgrade and where versions are missing."""

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.process_lives import lives_of
from tests.evidence.joining.evidence import started
from tests.evidence.joining.lines import line

REQUEST, FOLLOWS = line("leader_and_isr_received"), line("became_follower")


def runs(version: str) -> LogLineFact:
    return line("kafka_version", version=version)


def printed(*lines: LogLineFact) -> list[tuple[str | None, bool]]:
    return [(version, "became_follower" in kinds) for version, kinds in lives_of(list(lines))]


def test_a_version_prints_what_any_of_its_lives_prints_and_no_other_version_does() -> None:
    upgraded = (runs("1.1.1"), REQUEST, started(3), runs("2.8.2"), FOLLOWS, started(5))
    assert printed(*upgraded, runs("2.8.2")) == [("1.1.1", False), ("2.8.2", True), ("2.8.2", True)]


def test_a_life_without_a_version_prints_what_its_own_lines_say_if_it_was_asked() -> None:
    later = (started(3), runs("2.8.2"), FOLLOWS)
    assert printed(REQUEST, *later) == [(None, False), ("2.8.2", True)]
    assert printed(REQUEST, FOLLOWS, *later)[0] == (None, True)
    assert printed(line("log_loaded"), *later)[0] == (None, True)

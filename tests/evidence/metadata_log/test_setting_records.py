"""Settings by the records that change them."""

from replication.evidence.metadata_log.history import ConfigChange
from replication.evidence.metadata_log.setting_records import (
    removed_with_topic,
    setting,
    unclean_allowed,
)
from tests.evidence.metadata_log.placed import placed

UNCLEAN = "unclean.leader.election.enable"


def changes(*values: tuple[str, str | None]) -> list[ConfigChange]:
    return [ConfigChange(1, n, key, value) for n, (key, value) in enumerate(values)]


def test_settings_of_topics_and_brokers_and_of_nothing_else() -> None:
    def said(resource: int) -> object:
        values = {"resource_type": resource, "resource_name": "t", "name": "k", "value": "v"}
        one = setting(placed("ConfigRecord", 3, **values))
        return one and (one.of_topic, one.name, one.change)

    change = ConfigChange(1000, 3, "k", "v")
    assert said(2) == (True, "t", change)
    assert said(4) == (False, "t", change)
    assert said(32) is None  # a client's metrics


def test_a_topic_takes_its_settings_along() -> None:
    before = changes(("a", "1"), ("b", "1"), ("b", None), ("a", "2"))
    assert removed_with_topic(before, 9, 8) == [ConfigChange(9, 8, "a", None)]


def test_the_topics_own_word_on_unclean_elections_comes_first_and_the_last_counts() -> None:
    allowed, forbidden = changes((UNCLEAN, "true")), changes((UNCLEAN, "false"))
    assert unclean_allowed(allowed, forbidden)
    assert not unclean_allowed(forbidden, allowed)
    assert unclean_allowed(changes((UNCLEAN, "false"), (UNCLEAN, None)), allowed)
    assert not unclean_allowed([], [])

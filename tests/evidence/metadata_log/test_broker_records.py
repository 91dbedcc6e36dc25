"""What one record makes of one broker's standing."""

from replication.evidence.metadata_log.broker_records import Standing, standing_after
from tests.evidence.metadata_log.placed import about, registers

FENCED = Standing("i", fenced=True, in_controlled_shutdown=False)
ALIVE = Standing("i", fenced=False, in_controlled_shutdown=False)


def test_a_broker_registers_fenced_and_is_unfenced_later() -> None:
    now, changes = standing_after(None, registers(log_dirs=["d"]))
    assert now == FENCED
    assert [(c.kind, c.incarnation, c.log_dirs) for c in changes] == [("registered", "i", ("d",))]
    now, changes = standing_after(now, about("UnfenceBrokerRecord"))
    assert now == ALIVE
    assert [(c.kind, c.metadata_offset, c.at) for c in changes] == [("unfenced", 5, 1005)]


def test_a_registration_may_say_all_at_once() -> None:
    now, changes = standing_after(None, registers(fenced=False, in_controlled_shutdown=True))
    assert now == Standing("i", fenced=False, in_controlled_shutdown=True)
    assert [c.kind for c in changes] == ["registered", "unfenced", "controlled_shutdown"]


def test_a_registration_change_says_what_changes_only() -> None:
    same = standing_after(ALIVE, about("BrokerRegistrationChangeRecord"))
    assert same == (ALIVE, [])
    now, changes = standing_after(
        ALIVE, about("BrokerRegistrationChangeRecord", fenced=1, in_controlled_shutdown=1)
    )
    assert now == Standing("i", fenced=True, in_controlled_shutdown=True)
    assert [c.kind for c in changes] == ["fenced", "controlled_shutdown"]
    now, changes = standing_after(FENCED, about("BrokerRegistrationChangeRecord", fenced=-1))
    assert (now, [c.kind for c in changes]) == (ALIVE, ["unfenced"])


def test_of_a_broker_that_is_not_known_the_change_is_told_and_no_standing() -> None:
    now, changes = standing_after(None, about("FenceBrokerRecord"))
    assert (now, [(c.kind, c.incarnation) for c in changes]) == (None, [("fenced", None)])


def test_an_unregistered_broker_has_no_standing() -> None:
    now, changes = standing_after(ALIVE, about("UnregisterBrokerRecord"))
    assert (now, [(c.kind, c.incarnation) for c in changes]) == (None, [("unregistered", "i")])

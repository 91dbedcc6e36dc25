"""The controller's history from lines: which state, in which order, by which kind of election."""

import pytest

from replication.evidence.broker_logs.broker_log import LogLineFact
from replication.evidence.joining.registrations import Recorded, filled, from_lines, joined
from tests.evidence.joining.lines import line

REPLICAS = (1, 2, 3)


def kinds(found: list[Recorded]) -> list[tuple[int | None, int | None, str | None]]:
    return [(r.fact.partition_epoch, r.fact.leader, r.fact.election_kind) for r in found]


def state(partition_epoch: int, leader: int | None, leader_epoch: int, isr: tuple[int, ...],
          **more: object):  # type: ignore[no-untyped-def]  # fmt: skip
    return line("leader_and_isr_received", partition_epoch=partition_epoch, leader=leader,
                leader_epoch=leader_epoch, isr=isr, **more)  # fmt: skip


def test_states_are_ordered_by_partition_epoch_whatever_the_clocks_say() -> None:
    found = from_lines(
        [state(2, 2, 1, (2, 3)), state(0, 1, 0, REPLICAS), state(1, None, 0, (2, 3))], REPLICAS
    )
    assert kinds(found) == [(0, 1, "initial"), (1, None, None), (2, 2, "clean")]


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        ({"leader": 1, "isr": (1, 2, 3)}, {"leader": 2, "isr": (2, 3)}, "clean"),
        ({"leader": 2, "isr": (1, 2, 3)}, {"leader": 1, "isr": (1, 2, 3)}, "preferred"),
        ({"leader": 2, "isr": (2,)}, {"leader": 3, "isr": (3,)}, "unclean"),
        ({"leader": None, "isr": (), "elr": (3,)}, {"leader": 3, "isr": (3,)},
         "eligible_leader_replica"),
        ({"leader": None, "isr": (), "elr": (), "last_known_elr": (3,)}, {"leader": 3, "isr": (3,)},
         "last_known_leader"),
        ({"leader": 2, "isr": (2, 3)}, {"leader": 2, "isr": (2,)}, "same_leader"),
    ],
)  # fmt: skip
def test_the_kind_of_an_election_is_told_by_the_state_just_before(
    before: dict[str, object], after: dict[str, object], kind: str
) -> None:
    old = line("leader_and_isr_received", partition_epoch=4, leader_epoch=1, **before)
    new = line("leader_and_isr_received", partition_epoch=5, leader_epoch=2, **after)
    assert kinds(from_lines([old, new], REPLICAS))[-1][2] == kind
    later = line("leader_and_isr_received", partition_epoch=6, leader_epoch=2, **after)
    assert kinds(from_lines([old, later], REPLICAS))[-1][2] == "unknown"


@pytest.mark.parametrize(
    ("elr", "needed", "kind"),
    [(None, 2, "unknown"), (None, 1, "unclean"), (None, 0, "unclean"), ((), 2, "unclean"),
     ((3,), 2, "eligible_leader_replica")],
)  # fmt: skip
def test_who_came_from_outside_the_isr_may_have_been_eligible(
    elr: tuple[int, ...] | None, needed: int, kind: str
) -> None:
    """Brokers' lines do not say who is (KIP-966), and with enough members of the ISR nobody is."""
    old = state(4, 2, 1, (2,), elr=elr)
    assert kinds(from_lines([old, state(5, 3, 2, (3,))], REPLICAS, needed))[-1][2] == kind


@pytest.mark.parametrize(("replicas", "kind"), [((3, 2), "unknown"), ((3, 2, 1), "unclean")])
def test_who_leads_as_a_reassignment_ends_may_have_come_into_the_isr_just_then(
    replicas: tuple[int, ...], kind: str
) -> None:
    old = state(4, 1, 1, (1,), replicas=(3, 2, 1))
    assert kinds(from_lines([old, state(5, 3, 2, (3,), replicas=replicas)], None))[-1][2] == kind


def test_a_controllers_line_with_both_states_tells_the_kind_by_itself() -> None:
    change = line(
        "partition_changed", broker=100, partition_epoch_before=3, partition_epoch_after=4,
        leader_before=None, leader_after=2, leader_epoch_before=1, leader_epoch_after=2,
        isr_before=(), isr_after=(2,), elr_before=(1,), elr_after=(), last_known_elr_before=(1,),
        unclean=True,
    )  # fmt: skip
    assert kinds(from_lines([change], REPLICAS)) == [(4, 2, "unclean")]
    started = line("became_leader", broker=2, partition_epoch=4, leader_epoch=2, isr=(2,))
    assert kinds(from_lines([started, change], REPLICAS)) == [(4, 2, "unclean")]


def test_a_controllers_line_tells_whether_the_leader_has_yet_to_recover() -> None:
    """leaderRecoveryState is printed where it changes (KIP-704); else it is as it was before."""

    def change(partition_epoch: int, **more: object) -> LogLineFact:
        return line("partition_changed", broker=100, partition_epoch_after=partition_epoch,
                    leader_epoch_after=2, isr_after=(2,), **more)  # fmt: skip

    unclean = change(4, leader_after=2, recovering_before=False, recovering_after=True)
    recovered = change(6, recovering_before=True, recovering_after=False)
    found = from_lines([state(3, 3, 1, (3,)), unclean, change(5), recovered], REPLICAS)
    assert [r.fact.recovering for r in found] == [None, True, True, False]


def test_a_change_of_the_assignment_is_not_the_one_before_it() -> None:
    """A reassignment ends: the line prints who is assigned from then on."""
    change = line(
        "partition_changed", broker=100, partition_epoch_before=3, partition_epoch_after=4,
        replicas_before=(3, 2, 1), replicas_after=(3, 2), isr_before=(3,), isr_after=(3, 2),
    )  # fmt: skip
    same = line("partition_changed", broker=100, partition_epoch_after=5, isr_after=(3,))
    found = from_lines([state(3, 3, 1, (3,), replicas=(3, 2, 1)), change, same], REPLICAS)
    assert [r.fact.assigned_replicas for r in found] == [(3, 2, 1), (3, 2), (3, 2)]


def test_a_leaders_own_line_fills_the_one_gap_that_it_fits() -> None:
    shrink = line("isr_shrink_proposed", from_isr=(1, 2, 3), to_isr=(1, 2), at=5)
    found = from_lines([state(0, 1, 0, REPLICAS), shrink, state(2, 1, 0, (1,), at=9)], REPLICAS)
    assert [(r.fact.partition_epoch, r.fact.isr) for r in found] == [
        (0, REPLICAS), (1, (1, 2)), (2, (1,)),
    ]  # fmt: skip


def test_lines_go_on_where_a_history_ends_or_has_a_hole() -> None:
    history = from_lines([state(0, 1, 0, REPLICAS), state(2, 1, 0, (1,))], REPLICAS)
    lines = from_lines([state(1, 1, 0, (1, 2)), state(3, 1, 0, (1, 3))], REPLICAS)
    assert [r.fact.partition_epoch for r in joined(history, lines)] == [0, 2, 3]
    assert [r.fact.partition_epoch for r in filled(history, lines)] == [0, 1, 2, 3]


def test_a_created_partition_and_what_a_controller_sends_are_whole_states() -> None:
    """Without the metadata log and without any other broker's lines, these are all there is."""
    created = line(
        "partition_created", broker=100, partition_epoch=0, leader=1, leader_epoch=0, isr=REPLICAS,
        replicas=REPLICAS,
    )  # fmt: skip
    change = line(
        "partition_changed", broker=100, partition_epoch_after=1, leader_after=3,
        leader_epoch_after=1, isr_after=(2, 3),
    )  # fmt: skip
    assert kinds(from_lines([change, created], None)) == [(0, 1, "initial"), (1, 3, "clean")]
    sent = line(
        "leader_and_isr_sent", broker=1, partition_epoch=7, leader=2, leader_epoch=3, isr=(2,)
    )
    assert kinds(from_lines([sent], None)) == [(7, 2, "unknown")]
    # 0.10 and 0.11 print no partition epoch: nothing says between which states it stands.
    assert from_lines([line("leader_and_isr_sent", leader=2, leader_epoch=3, isr=(2,))], None) == []


def test_a_leaders_line_of_a_change_that_is_known_fills_no_later_gap() -> None:
    known = [
        state(0, 1, 0, (1, 2), at=1),
        state(1, 1, 0, REPLICAS, at=2),
        state(2, 1, 0, (1, 2), at=3),
        state(4, 2, 1, (2,), at=9),
    ]
    expanded = line("isr_expanded", from_isr=(1, 2), to_isr=REPLICAS, at=2, number=1)
    shrunk = line("isr_shrink_proposed", from_isr=(1, 2), to_isr=(1,), at=5, number=2)
    found = from_lines([*known, expanded, shrunk], REPLICAS)
    assert [r.fact.isr for r in found if r.fact.partition_epoch == 3] == [(1,)]
    assert kinds(found)[-1] == (4, 2, "unclean")
    assert kinds(from_lines([*known, expanded], REPLICAS))[-1] == (4, 2, "unknown")


@pytest.mark.parametrize(("later", "told"), [(3, True), (4, False), (None, False)])
def test_who_led_when_the_isr_changed_is_known_where_no_epoch_can_have_begun(
    later: int | None, told: bool
) -> None:
    """Partition epochs 3 and 4 are not here: another may have been elected by then."""
    facts = [
        state(2, 1, 3, REPLICAS),
        line("isr_changed_by_leader", partition_epoch=5, isr=(2, 3)),
        *([] if later is None else [state(6, 1, later, REPLICAS)]),
    ]
    assert (5 in {r.fact.partition_epoch for r in from_lines(facts, REPLICAS)}) is told


EXPANDED = line("isr_expanded", broker=1, from_isr=(1,), to_isr=(1, 2), at=5, number=5)
REFUSED = line("isr_update_refused", broker=1, partition_epoch=1, at=6, number=6)


@pytest.mark.parametrize(
    ("more", "isrs"),
    [
        ([], [(1,), (1, 2)]),
        # Each begins where the one before ended.
        ([line("isr_expanded", broker=1, from_isr=(1, 2), to_isr=REPLICAS, at=7, number=7)],
         [(1,), (1, 2), REPLICAS]),
        ([line("isr_shrink_proposed", broker=1, from_isr=(1, 3), to_isr=(1,), at=7, number=7)],
         [(1,), (1, 2)]),
        ([REFUSED], [(1,)]),
        # The next state came about otherwise.
        ([state(2, 2, 1, (2,), broker=2, at=9)], [(1,), (2,)]),
    ],
)  # fmt: skip
def test_what_a_leader_began_to_make_of_the_isr_counts_where_it_prints_no_more(
    more: list[LogLineFact], isrs: list[tuple[int, ...]]
) -> None:
    known = state(1, 1, 0, (1,), broker=1, at=3, number=3)
    found = from_lines([known, EXPANDED, *more], REPLICAS, only_begin={1})
    assert [r.fact.isr for r in found] == isrs
    alone = [r.fact.isr for r in from_lines([known, EXPANDED], REPLICAS)]
    assert alone == [(1,)], "it prints what it has made"


def test_an_older_line_of_a_leader_is_no_change_of_its_last_state() -> None:
    known = state(3, 1, 0, (1,), broker=1, at=6, number=6)
    assert [r.fact.isr for r in from_lines([known, EXPANDED], REPLICAS, only_begin={1})] == [(1,)]
    others = state(3, 1, 0, (1,), broker=2, at=3)
    assert len(from_lines([others, EXPANDED], REPLICAS, only_begin={1})) == 1, "it may not know it"

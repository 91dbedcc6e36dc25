"""A few seeds of each way in which broker logs say the same otherwise (rewritten_logs.py)."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.changed_evidence import each_incident
from tests.rewritten_logs import WAYS, zone_set_at

QUICK = ("kip101_scenario_1__0.10.2.2__loss_only", "unclean_election__4.1.1")


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("incident", each_incident(QUICK))
def test_what_is_said_otherwise_makes_no_verdict_wrong(incident: str, way: str, seed: int) -> None:
    wrong, sorts = WAYS[way](incident, seed)
    assert wrong == []
    assert sorts["HOLDS"] + sorts["VIOLATED"] > 0


def test_the_zone_sets_its_clocks_when_it_is_told_to() -> None:
    moment = datetime(2026, 11, 20, 15, 30, tzinfo=UTC)
    zone = zone_set_at(moment, 7200, 3600)
    shown = [(moment + timedelta(minutes=m)).astimezone(zone) for m in (-1, 0)]
    assert [(at.hour, at.minute) for at in shown] == [(17, 29), (16, 30)]

"""Leader epochs that are alike are followed once, however many there are."""

from collections.abc import Callable

import pytest

from replication.protocol.histories import alike
from replication.protocol.histories.search import Search
from replication.protocol.judgement.judge import answer
from tests.protocol.test_growth import (
    ACKNOWLEDGEMENTS,
    CONTROLLER,
    TRACES,
    Facts,
    clean_elections,
    preferred_elections,
    state_of,
)

Kind = Callable[[int], Facts]


def _followed(kind: Kind, elections: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many leader epochs are followed to judge so many elections of a kind."""
    state = state_of(kind, elections, [CONTROLLER, ACKNOWLEDGEMENTS, *TRACES])
    followed, count = Search._followed, [0]

    def counted(search: Search, *args: object) -> object:
        count[0] += 1
        return followed(search, *args)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(Search, "_followed", counted)
        found = {v["invariant"]: v["verdict"] for v in answer(state).verdicts}
    assert found["committed_records_survive"] == "HOLDS"
    return count[0]


@pytest.mark.parametrize("kind", [clean_elections, preferred_elections])
def test_alike_leader_epochs_are_followed_once(kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    assert _followed(kind, 60, monkeypatch) == _followed(kind, 30, monkeypatch) > 0
    monkeypatch.setattr(alike, "MOST_STATES", -1)
    assert _followed(kind, 60, monkeypatch) > 1.5 * _followed(kind, 30, monkeypatch)

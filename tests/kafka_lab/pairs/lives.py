"""What the topics of a run live by, and what `whatif` is told to get from one to the other."""

from dataclasses import asdict, dataclass
from typing import Any

FORCED = "election"


@dataclass(frozen=True)
class Life:
    """One topic's settings, and what is left out of the script: "restart.N" or "election"."""

    kafka: str
    min_insync: int = 1
    unclean: bool = False
    acks: str = "all"
    replicas: int = 3
    eligible: bool | None = None
    left_out: tuple[str, ...] = ()

    @property
    def topic(self) -> str:
        """Its name in a run, whose brokers share release and script."""
        how = "unclean" if self.unclean else "clean"
        return f"m{self.min_insync}-{how}-{self.acks}-r{self.replicas}"

    def as_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def of_json(cls, told: dict[str, Any]) -> "Life":
        return cls(**{**told, "left_out": tuple(told["left_out"])})


def grid(replicas: int, *, more: int = 0) -> list[tuple[int, bool, str, int]]:
    """min.insync.replicas, unclean, acks and replicas of the topics of a run; with acks=1 the
    first does nothing. more: replicas of a topic besides, on brokers that never fail."""
    found = [(m, u, "all", replicas) for m in (1, 2) for u in (False, True)]
    found += [(1, u, "1", replicas) for u in (False, True)]
    return found + ([(1, True, "all", more), (1, False, "all", more)] if more else [])


def change(was: Life, then: Life) -> list[str]:
    """What `--set` says, piece by piece; of forced elections "election" alone, whose epochs the
    evidence names."""
    said = []
    if was.kafka != then.kafka:
        said.append(f"kafka={then.kafka}")
    if was.eligible != then.eligible and then.eligible is not None:
        said.append(f"eligible.leader.replicas.version={int(then.eligible)}")
    if was.min_insync != then.min_insync:
        said.append(f"min.insync.replicas={then.min_insync}")
    if was.unclean != then.unclean:
        said.append(f"unclean.leader.election.enable={str(then.unclean).lower()}")
    if was.acks != then.acks:
        said.append(f"acks={then.acks}")
    if was.replicas != then.replicas:
        said.append(f"replication.factor={then.replicas}")
    for name in then.left_out:
        if name not in was.left_out:
            said.append(name if name == FORCED else f"{name}=no")
    return said


def can_be_asked(was: Life, then: Life) -> bool:
    """Nothing can be added to a script, only left out; replicas can be added only."""
    return set(was.left_out) <= set(then.left_out) and was.replicas <= then.replicas

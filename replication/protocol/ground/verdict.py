"""Three-valued verdicts and the proofs behind them."""

import hashlib
from dataclasses import dataclass, field
from typing import Any

HOLDS = "HOLDS"
VIOLATED = "VIOLATED"
UNKNOWN = "UNKNOWN"


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a proof: the event it rests on, and what follows from it."""

    event_id: str
    because: str


@dataclass(slots=True)
class Finding:
    """A proof that an invariant was broken: data first, words second.

    key: what identifies the finding within its partition (invariant, offsets, epochs, replicas);
    the finding_id is derived from it, so the same evidence gives the same id everywhere.
    warns: nothing is broken by what was found, and `invariant` is the name of its kind.
    """

    invariant: str
    severity: str
    summary: str
    key: tuple[Any, ...]
    steps: list[Step] = field(default_factory=list)
    warns: bool = False

    def finding_id(self, identity: tuple[Any, ...]) -> str:
        """16 hexadecimal digits, stable for the same partition, invariant and offsets."""
        text = repr((identity, self.invariant, self.key))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(slots=True)
class Verdict:
    """What is decided about one invariant of one topic partition.

    settled_by: the artefacts that would decide what is open: all of UNKNOWN; of VIOLATED the other
    offsets, where some are not decided. not_supplied: a whole class of evidence was never handed
    over. assuming: what is taken for granted, by the names of histories/assumptions.py. histories:
    of what is open, one that keeps and one that breaks the promise.
    """

    invariant: str
    verdict: str
    reason: str
    findings: list[Finding] = field(default_factory=list)
    settled_by: list[str] = field(default_factory=list)
    not_supplied: bool = False
    assuming: list[str] = field(default_factory=list)
    histories: dict[str, Any] | None = None

    def add_open(self, rest: "Verdict") -> None:
        """Says of a refuted invariant what is not decided at other offsets."""
        said = f"not decided at other offsets: {rest.reason}"
        self.reason = f"{self.reason}; {said}" if self.reason else said
        self.settled_by, self.histories = rest.settled_by, rest.histories


def holds(invariant: str, reason: str) -> Verdict:
    """The invariant is decided to hold; the reason names the coverage it rests on."""
    return Verdict(invariant, HOLDS, reason)


def violated(invariant: str, findings: list[Finding]) -> Verdict:
    """The invariant is refuted by each of findings."""
    reason = "; ".join(f.summary for f in findings[:3])
    if len(findings) > 3:
        reason += f"; and {len(findings) - 3} more"
    return Verdict(invariant, VIOLATED, reason, findings)


def unknown(invariant: str, reason: str, settled_by: list[str], missing: bool = False) -> Verdict:
    """The evidence decides nothing; settled_by names what would."""
    return Verdict(invariant, UNKNOWN, reason, [], settled_by, missing)

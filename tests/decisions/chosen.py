"""What is advised against what log ends alone would choose, by what the machine really loses.

`python -m tests.decisions.chosen N [SEED [RESTS]]` prints the counts.
"""

import random
import sys
from collections import Counter
from dataclasses import dataclass, field

from replication.decisions.answer import Decision, decide
from replication.decisions.choosing import by_log_end, isr_proof
from replication.decisions.questions import ACKNOWLEDGED_BY_ALL, PROMISED
from replication.protocol.ground.topic_partition import State
from tests.decisions.elected import Real, is_admitted, leaderless, really
from tests.protocol.histories.refinement import rests


@dataclass
class Score:
    """counts: what -> decisions. failures: the first few, in words."""

    counts: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)


def promised_records(real: Real) -> int:
    """How many promised records are lost under a candidate."""
    return sum(len(real.lost[tier]) for tier in PROMISED)


def hold(score: Score, where: str, state: State, real: dict[int, Real]) -> Decision:
    """Holds one advice, and one proof, against what each election really loses."""
    found = decide(state)
    chosen, by_end = found.choice.replica, by_log_end(state)
    score.counts[f"advice {found.choice.advice}"] += 1
    least = min(promised_records(r) for r in real.values())
    if chosen in real and promised_records(real[chosen]) > least:
        score.counts["chosen is not the least"] += 1
        if not found.outlook.candidates[0].assuming:
            score.failures.append(f"{where}: chosen {chosen} loses more than another")
    if chosen in real and by_end in real:
        worse = promised_records(real[by_end]) > promised_records(real[chosen])
        better = promised_records(real[by_end]) < promised_records(real[chosen])
        score.counts["log ends choose worse"] += worse
        score.counts["log ends choose better"] += better
    for replica, each in real.items():
        if isr_proof(found.outlook, replica) is None:
            continue
        score.counts["in the last ISR of min.insync.replicas"] += 1
        if each.lost[ACKNOWLEDGED_BY_ALL]:
            score.counts["and loses what acks=all promised"] += 1
            version = state.settings.kafka_version
            score.failures.append(f"{where} ({version}): proof of {replica} fails")
    return found


def compare(seeds: range, count: int) -> Score:
    """Many schedules, with count rests of each kind."""
    score = Score()
    for seed in seeds:
        story = leaderless(seed)
        score.counts["schedules"] += 1
        real = {r: really(story, r) for r in story.world.brokers}
        for name, state in [*rests(story.world, random.Random(seed), count)][
            : None if count else 1
        ]:
            where, this = f"seed {seed} {name}", Score()
            hold(this, where, state, real)
            if this.failures and not is_admitted(story.world, where, state, strict=False):
                score.counts["the histories exclude what happened"] += 1
                this.failures = [f for f in this.failures if "proof" in f]
            score.counts += this.counts
            score.failures += this.failures
    return score


def main() -> int:
    """Prints the counts and the failures; exit status 1 if there are any."""
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    score = compare(
        range(first, first + int(sys.argv[1])), int(sys.argv[3]) if len(sys.argv) > 3 else 0
    )
    for what, number in sorted(score.counts.items()):
        print(f"{number:9} {what}")
    for line in score.failures[:60]:
        print(line)
    return int(bool(score.failures))


if __name__ == "__main__":
    sys.exit(main())

"""Random schedules of scenario commands, run through the machine and the naive model together.

A schedule is a list of command lines, so a difference is printed as a scenario file. Run as
`python -m tests.protocol.schedules N [SEED]` for a long search.
"""

import random
import sys
import time
from dataclasses import dataclass

from replication.machine.scenario import Story
from replication.machine.scenario_check import fold_steps
from replication.protocol.ground.events import RecordsAcknowledged
from replication.protocol.ground.versions import NEWEST_KNOWN, behaviour
from replication.protocol.judgement.judge import answer
from tests.protocol.naive_model import NaiveModel
from tests.protocol.stories import NAMES, begun, tell

RELEASES = (
    "0.8.2.2", "0.9.0.1", "0.10.1.1", "0.10.2.2", "0.11.0.0", "0.11.0.3", "1.0.1", "1.0.2",
    "1.1.0", "1.1.1", "2.0.0", "2.0.1", "2.1.0", "2.3.1", "2.4.0", "2.4.1", "2.5.0", "2.6.0",
    "2.6.1", "2.7.0", "2.7.2", "2.8.0", "2.8.1", "3.0.0", "3.2.0", "3.3.0", "3.4.0", "3.4.1",
    "3.5.0", "3.6.0", "3.7.0", "3.9.1", "4.0.0", "4.1.0", f"{NEWEST_KNOWN}.0",
)  # fmt: skip
# With their controller: the last that may have ZooKeeper has it, others from 3.0 on have KRaft.
VERSIONS = [(release, release >= "3" and release != "3.9.1") for release in RELEASES]


@dataclass(frozen=True)
class Setting:
    """What a schedule runs under."""

    version: str
    kraft: bool
    min_insync: int
    unclean: bool

    @property
    def elr(self) -> bool:
        return self.kraft and behaviour(self.version, controller="kraft").eligible_leader_replicas

    @property
    def given(self) -> str:
        controller = "kraft" if self.kraft else "zookeeper"
        return (
            f"given isr=A,B,C kafka={self.version} controller={controller} "
            f"min_insync_replicas={self.min_insync} unclean={'yes' if self.unclean else 'no'}"
        )


def setting(chance: random.Random) -> Setting:
    """A random version and settings."""
    version, kraft = chance.choice(VERSIONS)
    return Setting(version, kraft, chance.choice((1, 2)), chance.random() < 0.4)


def next_command(chance: random.Random, naive: NaiveModel, number: int) -> str:
    """A command that makes sense more often than not."""
    name = chance.choice(NAMES)
    leaders = [r.name for r in naive.replicas.values() if r.role == "leader"]
    followers = [r.name for r in naive.replicas.values() if r.role == "follower"]
    stopped = [r.name for r in naive.replicas.values() if not r.running]
    running = [r.name for r in naive.replicas.values() if r.running]
    draw = chance.random()
    if draw < 0.18 and leaders:
        count = chance.choice(("", "", "*2", "*3"))
        acks = chance.choice(("", " acks=0", " acks=1", " acks=all"))
        return f"produce {chance.choice(leaders)} r{number}{count}{acks}"
    if draw < 0.55 and followers:
        extra = chance.choice(
            ("", "", "", " response=lost", " response=delayed", " max=1", " at_once=yes")
        )
        return f"fetch {chance.choice(followers)}{extra}"
    if draw < 0.58:
        waiting = [r.name for r in naive.replicas.values() if r.answer is not None]
        return f"receive {chance.choice(waiting or NAMES)}"
    if draw < 0.66 and running:
        return _ending(chance, chance.choice(running), naive)
    if draw < 0.75 and stopped:
        return f"start {chance.choice(stopped)}{chance.choice(('', '', ' deliver=no'))}"
    if draw < 0.83:
        return _election(chance, running or NAMES)
    return _other(chance, name)


def _ending(chance: random.Random, name: str, naive: NaiveModel) -> str:
    r = naive.replicas[name]
    kind = chance.choice(("stop", "stop", "process", "power", "disk"))
    if kind == "stop":
        return f"stop {name}"
    if kind == "power":
        return f"crash {name} kind=power to={chance.randint(r.start, max(r.start, r.end))}"
    return f"crash {name} kind={kind}"


def _election(chance: random.Random, running: list[str]) -> str:
    name = chance.choice(running)
    if chance.random() < 0.4:
        return "elect" + chance.choice(("", " cause=preferred", " cause=unclean"))
    line = f"elect {name}"
    if chance.random() < 0.5:
        line += " isr=" + ",".join(n for n in NAMES if n == name or chance.random() < 0.5)
    if chance.random() < 0.4:
        line += " deliver=" + ",".join(n for n in NAMES if n == name or chance.random() < 0.4)
    return line


def _other(chance: random.Random, name: str) -> str:
    return chance.choice(
        (
            f"checkpoint {name}",
            f"isolate {name}",
            f"rejoin {name}",
            f"rejoin {name}",
            f"fence {name}",
            f"unfence {name}",
            f"deliver {name}",
            f"deliver {name}",
            f"truncate {name}",
            "tick ms=4000",
            "tick ms=20000",
            "isr check",
            f"isr remove={name}",
            f"delete_records before={chance.randint(0, 4)}",
            "delete_records",
        )
    )


def allowed(naive: NaiveModel, line: str) -> bool:
    """Keeps out what the machine refuses as a mistake of the caller, and what nobody describes.

    Up to 2.3 a leader's high watermark may lie beyond its log end: what deleteRecords does there
    no description of the protocol says. No controller puts a replica into the ISR by electing
    another: it had to catch up, and a leader counts upon that.
    """
    words = line.split()
    isr = next((w[4:].split(",") for w in words if w.startswith("isr=")), [])
    if words[0] == "elect" and not (set(isr) <= set(naive.isr) or isr == words[1:2]):
        return False
    if words[0] == "delete_records" and naive.leader is not None:
        leader = naive.replicas[naive.leader]
        return leader.mark <= leader.end
    if words[0] == "isr" and len(words) > 1 and words[1].startswith("remove="):
        return naive.leader is not None and words[1] != f"remove={naive.leader}"
    return True


def difference(story: Story, naive: NaiveModel) -> str | None:
    """The first thing that the two disagree on, in words."""
    world = story.world
    c = world.controller
    name = world.name
    theirs = (
        None if c.leader is None else name(c.leader),
        c.leader_epoch,
        c.partition_epoch,
        [name(r) for r in c.isr],
        {name(r) for r in c.eligible},
        None if c.last_known_leader is None else name(c.last_known_leader),
        c.recovering,
    )
    ours = (
        naive.leader,
        naive.leader_epoch,
        naive.partition_epoch,
        naive.isr,
        naive.elr,
        naive.last_known,
        naive.recovering,
    )
    if theirs != ours:
        return f"controller: machine {theirs}, naive model {ours}"
    acked = [
        (o, f.leader_epoch, world.contents[f.content or 0], f.acks)
        for f in (step.fact for step in world.steps)
        if isinstance(f, RecordsAcknowledged)
        for o in range(f.first_offset, f.end_offset)
    ]
    if acked != naive.acked:
        return f"acknowledged: machine {acked}, naive model {naive.acked}"
    for b in world.brokers.values():
        r = naive.replicas[name(b.replica)]
        records = {
            o: (s.leader_epoch, world.contents[s.content or 0])
            for s in b.log.spans
            for o in range(s.first_offset, s.end_offset)
        }
        pairs = [
            ("records", records, r.records),
            ("log start", b.log.log_start_offset, r.start),
            ("log end", b.log.log_end_offset, r.end),
            ("high watermark", b.high_watermark if b.running else r.mark, r.mark),
            ("epochs", [tuple(e) for e in b.epoch_entries], r.cache),
            ("running", b.running, r.running),
            ("role", b.role, r.role),
            ("leader", None if b.leader is None else name(b.leader), r.leader),
            ("leader epoch", b.leader_epoch, r.term),
            ("truncating", b.truncating, r.truncating),
            ("fetching", b.fetching, r.fetching),
            ("isr", {name(x) for x in b.isr}, r.isr),
            ("proposed", None if b.proposed is None else {name(x) for x in b.proposed}, r.wish),
            (
                "followers",
                {name(x): f.log_end_offset for x, f in b.followers.items()},
                {x: k.end for x, k in r.known.items()},
            ),
        ]
        for what, machines, naives in pairs:
            if machines != naives:
                return f"{what} of {r.name}: machine {machines}, naive model {naives}"
    return None


def verdict_difference(story: Story, naive: NaiveModel) -> str | None:
    """Whether the fold's verdict on committed records is the naive one."""
    state = fold_steps(story.world)
    for replica, known in state.replicas.items():
        broker = story.world.brokers[replica]
        if known.log.spans != broker.log.spans and [
            (o, s.leader_epoch, s.content)
            for s in known.log.spans
            for o in range(s.first_offset, s.end_offset)
        ] != [
            (o, s.leader_epoch, s.content)
            for s in broker.log.spans
            for o in range(s.first_offset, s.end_offset)
        ]:
            return f"the fold's log of {replica}: {known.log.spans}, machine {broker.log.spans}"
    judged = {v["invariant"]: v for v in answer(state).verdicts}
    theirs = judged["committed_records_survive"]["verdict"]
    ours = "VIOLATED" if naive.missing() else "HOLDS"
    if theirs != ours:
        reason = judged["committed_records_survive"]["reason"]
        return (
            f"committed_records_survive: {theirs} ({reason}), naive model {ours} {naive.missing()}"
        )
    return None


def run(under: Setting, lines: list[str]) -> tuple[str, int] | None:
    """Runs a schedule through both; the difference and the step after which it shows, or None."""
    story, naive = new_pair(under)
    for number, line in enumerate(lines):
        tell(story, line)
        naive.do(line)
        found = difference(story, naive)
        if found:
            return found, number
    found = verdict_difference(story, naive)
    return (found, len(lines) - 1) if found else None


def new_pair(under: Setting) -> tuple[Story, NaiveModel]:
    """Both models at their start."""
    naive = NaiveModel(
        under.version, [*NAMES], under.min_insync, under.unclean, under.kraft, under.elr
    )
    return begun(under.given), naive


def schedule(seed: int, length: int = 24) -> tuple[Setting, list[str], str | None]:
    """Makes and runs one schedule; the difference, if any, comes with it."""
    under, lines, found, _ = _run(seed, length)
    return under, lines, found


def schedule_story(seed: int, length: int = 24) -> Story:
    """The machine's story at the end of the schedule of this seed."""
    return _run(seed, length)[3]


def _run(seed: int, length: int) -> tuple[Setting, list[str], str | None, Story]:
    chance = random.Random(seed)
    under = setting(chance)
    story, naive = new_pair(under)
    lines: list[str] = []
    for number in range(length):
        line = next_command(chance, naive, number)
        if not allowed(naive, line):
            continue
        lines.append(line)
        tell(story, line)
        naive.do(line)
        found = difference(story, naive)
        if found:
            return under, lines, found, story
    return under, lines, verdict_difference(story, naive), story


def shrunk(under: Setting, lines: list[str]) -> list[str]:
    """The schedule without the commands that the difference does not need."""
    found = run(under, lines)
    if found is None:
        return lines
    lines = lines[: found[1] + 1]
    kind = found[0].split(":")[0]
    position = 0
    while position < len(lines):
        shorter = lines[:position] + lines[position + 1 :]
        found = run(under, shorter) if shorter else None
        if found is not None and found[0].split(":")[0] == kind:
            lines = shorter[: found[1] + 1]
        else:
            position += 1
    return lines


def as_scenario(under: Setting, lines: list[str], why: str) -> str:
    """A failing schedule as a scenario file; what the machine does is left to --rewrite."""
    picture = [line for _, line in begun(under.given).given.lines]
    stanzas = ["\n".join([f"# {why}", under.given, *picture, "----", "ok"])]
    stanzas += [f"{line}\n----" for line in lines]
    return "\n\n".join(stanzas) + "\n"


def search(count: int, first_seed: int = 0, length: int = 24) -> list[str]:
    """Runs count schedules; what differed, each as a scenario file."""
    failures = []
    for seed in range(first_seed, first_seed + count):
        under, lines, found = schedule(seed, length)
        if found:
            small = shrunk(under, lines)
            again = run(under, small)
            why = f"seed {seed}: {again[0] if again else found}"
            failures.append(as_scenario(under, small, why))
            if len(failures) >= 5:
                break
    return failures


def main() -> int:
    """Prints the failures and how many schedules ran; exit status 1 if any differs."""
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    first = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    began = time.monotonic()
    failures = search(count, first)
    for text in failures:
        print(text)
    print(f"{count} schedules, {len(failures)} differ, {time.monotonic() - began:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())

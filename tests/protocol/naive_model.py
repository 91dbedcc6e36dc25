"""A deliberately dumb Kafka partition: every record in a dict, every rule applied as it is told.

Written from the protocol's description alone: it imports nothing of the product, knows versions as
plain numbers, and keeps no run of anything. It understands the commands of scenario text, so one
schedule drives it and the machine, and a difference prints itself as a scenario.
"""

from dataclasses import dataclass, field
from typing import Any

LAG = {"short": 10_000, "long": 30_000}


class Cannot(Exception):
    """The command cannot happen now."""


def numbers(version: str) -> tuple[int, ...]:
    """3.9.1 as (3, 9, 1)."""
    return tuple(int(n) for n in version.split("."))


@dataclass
class Known:
    """What a leader knows of a follower: its log end, when it was caught up and fetched last."""

    caught_up: int
    end: int | None = None
    fetched: int = 0
    seen: int | None = None
    sent: int | None = None
    life: int | None = None


@dataclass
class Replica:
    """A broker and its log: records is offset -> (leader epoch, content)."""

    name: str
    records: dict[int, tuple[int, str]] = field(default_factory=dict)
    start: int = 0
    end: int = 0
    mark: int = 0
    mark_on_disk: int = 0
    cache: list[tuple[int, int]] = field(default_factory=list)
    running: bool = True
    clean: bool = True
    alone: bool = False
    life: int = 1
    role: str | None = None
    leader: str | None = None
    term: int | None = None
    version_of_partition: int | None = None
    checked_against: tuple[str, int] | None = None
    truncating: bool = False
    fetching: bool = True
    answer: dict[str, Any] | None = None
    first_of_term: int = 0
    isr: set[str] = field(default_factory=set)
    wish: set[str] | None = None
    known: dict[str, Known] = field(default_factory=dict)
    waiting: list[tuple[int, int, int, str, str]] = field(default_factory=list)
    times_led: dict[int, int] = field(default_factory=dict)


class NaiveModel:
    """One partition. names in assignment order; all logs empty, the first replica leads epoch 0."""

    def __init__(
        self,
        version: str,
        names: list[str],
        min_insync: int,
        unclean: bool,
        kraft: bool,
        elr: bool = False,
    ) -> None:
        self.v = numbers(version)
        self.kraft, self.elr_on = kraft, elr
        self.names = names
        self.min_insync = min_insync
        self.unclean = unclean
        self.replicas = {n: Replica(n) for n in names}
        self.leader: str | None = names[0]
        self.leader_epoch = 0
        self.partition_epoch = 0
        self.isr = list(names)
        self.elr: set[str] = set()
        self.last_known: str | None = None
        self.recovering = False
        self.active = set(names)
        self.now = 1_000_000_000
        self.acked: list[tuple[int, int, str, str]] = []
        self.committed: dict[tuple[int, int, str], tuple[int, int]] = {}
        self.lost: set[tuple[int, int, str]] = set()
        self.removed: set[tuple[int, int, str]] = set()
        self.terms: dict[tuple[int, str], int] = {}
        self.used: set[str] = set()
        self.last_elected = names[0]
        for r in self.replicas.values():
            r.leader, r.term, r.version_of_partition = names[0], 0, 0
            r.role = "follower"
            r.checked_against = (names[0], 0)
        first = self.replicas[names[0]]
        first.role, first.isr, first.checked_against = "leader", set(names), None
        if self.since("2.0.1", "2.1.0"):
            first.cache = [(0, 0)]
        first.known = {n: Known(self.now) for n in names[1:]}
        self.terms[(0, names[0])] = 0

    # Versions: a change is in a release if its own branch had it by then, or it came earlier.

    def since(self, *firsts: str) -> bool:
        """Whether this version has what first came with these releases."""
        for first in map(numbers, firsts):
            if first[:-1] == self.v[:-1]:
                return self.v >= first
        return self.v > numbers(firsts[-1])

    @property
    def epochs(self) -> bool:
        return self.v >= (0, 11)

    @property
    def lag(self) -> int:
        return LAG["long"] if self.v >= (2, 5) else LAG["short"]

    @property
    def least(self) -> int:
        """min.insync.replicas as it counts."""
        return min(self.min_insync, len(self.names)) if self.v >= (3, 7) else self.min_insync

    # Epoch caches, record by record.

    def remember_epoch(self, r: Replica, leader_epoch: int, offset: int) -> None:
        if r.cache and r.cache[-1][0] == leader_epoch and r.cache[-1][1] <= offset:
            return
        if not self.since("2.0.1", "2.1.0"):
            if not r.cache or (leader_epoch > r.cache[-1][0] and offset >= r.cache[-1][1]):
                r.cache.append((leader_epoch, offset))
            return
        while r.cache and (r.cache[-1][0] >= leader_epoch or r.cache[-1][1] >= offset):
            r.cache.pop()
        r.cache.append((leader_epoch, offset))

    def end_of_epoch(self, r: Replica, asked: int | None) -> tuple[int | None, int | None]:
        names_epoch = self.v >= (2, 0)
        if asked is None:
            silent = self.since("0.11.0.3", "1.0.2", "1.1.1", "2.0.0")
            return (None, None) if r.cache or silent else (None, r.end)
        if not r.cache or asked > r.cache[-1][0]:
            return None, None
        if asked == r.cache[-1][0]:
            return (asked if names_epoch else None), r.end
        if asked < r.cache[0][0]:
            if not self.since("2.0.1", "2.1.0"):
                return None, None
            return (asked if names_epoch else None), r.cache[0][1]
        floor = [e for e, _ in r.cache if e <= asked][-1]
        after = next(s for e, s in r.cache if e > asked)
        return (floor if names_epoch else None), after

    # Logs.

    def put(self, r: Replica, offset: int, leader_epoch: int, content: str) -> None:
        r.records[offset] = (leader_epoch, content)
        r.end = offset + 1
        if self.epochs:
            self.remember_epoch(r, leader_epoch, offset)

    def cut(self, r: Replica, target: int) -> None:
        if target >= r.end:
            if self.since("2.6.1", "2.7.0"):
                r.cache = [(e, s) for e, s in r.cache if s < r.end]
            return
        if target < r.start:
            self.restart_log(r, target)
            return
        for offset in [o for o in r.records if o >= target]:
            del r.records[offset]
        r.end = target
        r.cache = [(e, s) for e, s in r.cache if s < target]
        if self.v >= (2, 4):
            r.mark = min(r.mark, target)

    def restart_log(self, r: Replica, offset: int) -> None:
        r.records = {}
        r.start = r.end = offset
        r.cache = []
        if self.since("2.4.1", "2.5.0"):
            r.mark = offset
        elif self.v >= (2, 4):
            r.mark = min(r.mark, offset)

    def raise_start(self, r: Replica, offset: int) -> None:
        if offset <= r.start:
            return
        for old in [o for o in r.records if o < offset]:
            del r.records[old]
        r.start = offset
        self.forget_epochs(r)

    def forget_epochs(self, r: Replica) -> None:
        """Epochs that end before the log starts go; the one that reaches across begins there."""
        gone = [e for e in r.cache if e[1] < r.start]
        r.cache = [e for e in r.cache if e[1] >= r.start]
        if gone and all(s > r.start for _, s in r.cache):
            r.cache.insert(0, (gone[-1][0], r.start))

    # Leaders.

    def counted(self, leader: Replica) -> set[str]:
        if self.v >= (2, 7) and leader.wish is not None:
            return leader.isr | leader.wish
        return leader.isr

    def move_mark(self, leader: Replica) -> None:
        if not (self.v >= (3, 7) and len(leader.isr) < self.least):
            lowest: int | None = leader.end
            for name, k in leader.known.items():
                member = name in self.counted(leader)
                near = self.now - k.caught_up <= self.lag
                if self.v >= (3, 6):
                    near = near or k.end == leader.end
                outsider = self.v >= (0, 10, 2) and near
                if self.v >= (3, 6):
                    outsider = outsider and name in self.active
                    if self.kraft:
                        outsider = outsider and k.life == self.replicas[name].life
                if member or outsider:
                    unknown = k.end is None or lowest is None
                    lowest = None if unknown else min(lowest, k.end)
            if lowest is not None and lowest > leader.mark:
                leader.mark = lowest
                self.promise(leader)
        self.answer_producers(leader)

    def promise(self, leader: Replica) -> None:
        """Everything below a valid leader's high watermark is committed, in its term."""
        if leader.role != "leader" or leader.term is None or leader.term < self.leader_epoch:
            return
        term = (leader.term, leader.times_led.get(leader.term, 0))
        for offset in range(leader.start, leader.mark):
            if offset in leader.records:
                record = (offset, *leader.records[offset])
                self.committed.setdefault(record, term)

    def answer_producers(self, leader: Replica) -> None:
        still = []
        for first, end, term, content, acks in leader.waiting:
            if acks == "1":
                self.acknowledge(first, end, term, content, "1")
            elif leader.role != "leader" or acks == "0":
                pass
            elif leader.mark >= end:
                if len(self.counted(leader)) >= self.least:
                    self.acknowledge(first, end, term, content, "all")
            else:
                still.append((first, end, term, content, acks))
        leader.waiting = still

    def acknowledge(self, first: int, end: int, term: int, content: str, acks: str) -> None:
        for offset in range(first, end):
            self.acked.append((offset, term, content, acks))

    # Commands.

    def do(self, line: str) -> bool:
        """One command of scenario text; False when it cannot happen."""
        words = line.split()
        arguments = [w for w in words[1:] if "=" not in w]
        settings = dict(w.split("=", 1) for w in words[1:] if "=" in w)
        try:
            getattr(self, "do_" + words[0])(arguments, settings)
        except Cannot:
            return False
        return True

    def do_produce(self, arguments: list[str], settings: dict[str, str]) -> None:
        r = self.replicas[arguments[0]]
        label, _, count = arguments[1].partition("*")
        if label in self.used:
            raise Cannot
        self.used.add(label)
        if not r.running or r.role != "leader" or r.term is None:
            raise Cannot
        acks = settings.get("acks")
        if acks == "all" and len(r.isr) < self.least:
            return
        first = r.end
        for _ in range(int(count or 1)):
            self.put(r, r.end, r.term, label)
        self.move_mark(r)
        if acks:
            r.waiting.append((first, r.end, r.term, label, acks))
            self.answer_producers(r)
        self.settle()

    def do_fetch(self, arguments: list[str], settings: dict[str, str]) -> None:
        f = self.replicas[arguments[0]]
        answer = self.ask(f, settings)
        self.settle()
        how = settings.get("response")
        if answer is None or how == "lost":
            return
        if how == "delayed":
            f.answer = answer
        else:
            self.take(f, answer)

    def reach(self, f: Replica) -> Replica | None:
        if not f.running or f.role != "follower":
            raise Cannot
        if f.leader is None or not f.fetching:
            return None
        leader = self.replicas[f.leader]
        if not leader.running or leader.alone or f.alone:
            return None
        return leader

    def ask(self, f: Replica, settings: dict[str, str]) -> dict[str, Any] | None:
        leader = self.reach(f)
        if leader is None:
            return None
        if f.truncating:
            self.truncate(f)
            if f.truncating:
                return None
        current = f.term if self.v >= (2, 1) else None
        last = f.cache[-1][0] if self.v >= (2, 8) and f.cache else None
        answer: dict[str, Any] = {
            "from": leader.name,
            "offset": f.end,
            "term": current,
            "error": None,
            "thrown_away": False,
            "diverging": None,
            "records": [],
            "mark": leader.mark,
            "start": leader.start,
        }
        before = leader.mark
        counts = False
        end = self.end_of_epoch(leader, last) if last is not None else (None, None)
        fixed = self.since("2.7.2", "2.8.1", "3.0.0")
        theirs = -1 if leader.term is None else leader.term
        if current is not None and current != theirs:
            answer["error"] = "FENCED" if current < theirs else "UNKNOWN"
        elif leader.role != "leader":
            answer["error"] = "NOT_LEADER"
        elif last is not None and (None in end or (fixed and f.end < leader.start)):
            answer["error"] = "OUT_OF_RANGE"
        elif (
            end[0] is not None
            and end[1] is not None
            and last is not None
            and (end[0] < last or end[1] < f.end)
        ):
            answer["diverging"] = end
            counts = not fixed
        elif f.end > leader.end or f.end < leader.start:
            answer["error"] = "OUT_OF_RANGE"
        else:
            counts = True
            stop = leader.end
            if "max" in settings:
                stop = min(stop, f.end + int(settings["max"]))
            answer["records"] = [
                (o, *leader.records[o]) for o in range(f.end, stop) if o in leader.records
            ]
        plain = answer["error"] is None and answer["diverging"] is None
        known = leader.known.get(f.name)
        if counts and known is not None:
            self.count(leader, f, known)
        later = plain and settings.get("at_once") != "yes" and not answer["records"]
        if known is not None and known.sent is not None and (2, 4) <= self.v < (2, 6):
            later = later and known.sent >= before
        if self.v >= (1, 0) and not self.since("1.0.2", "1.1.1", "2.0.0"):
            later = True
        answer["mark"] = leader.mark if later else before
        if known is not None:
            known.sent = answer["mark"]
        return answer

    def count(self, leader: Replica, f: Replica, known: Known) -> None:
        if f.end >= leader.end or self.v < (0, 9):
            known.caught_up = max(known.caught_up, self.now)
        elif self.v >= (0, 10, 2) and known.seen is not None and f.end >= known.seen:
            known.caught_up = max(known.caught_up, known.fetched)
        known.seen = max(leader.end, known.seen or 0)
        known.fetched = self.now
        known.end = f.end
        known.life = f.life
        may = f.name not in self.counted(leader) and f.end >= leader.mark
        if self.since("2.0.1", "2.1.0"):
            may = may and f.end >= leader.first_of_term
        if self.v >= (3, 3):
            may = may and f.name in self.active
        if may:
            self.wish(leader, leader.isr | {f.name})
        self.move_mark(leader)

    def wish(self, leader: Replica, isr: set[str]) -> None:
        if leader.wish is not None or isr == leader.isr:
            return
        if self.v >= (2, 7):
            leader.wish = isr
        elif leader.version_of_partition == self.partition_epoch:
            self.write_isr(leader, isr)
            self.move_mark(leader)

    def write_isr(self, leader: Replica, isr: set[str]) -> None:
        self.isr = [n for n in self.names if n in isr]
        self.partition_epoch += 1
        self.recovering = False
        leader.isr, leader.wish = set(isr), None
        leader.version_of_partition = self.partition_epoch

    def settle(self) -> None:
        for leader in self.replicas.values():
            if leader.wish is None or leader.alone or leader.role != "leader":
                continue
            if leader.name == self.leader:
                self.decide(leader)

    def decide(self, leader: Replica) -> None:
        isr = leader.wish
        if isr is None or leader.term != self.leader_epoch:
            return
        if leader.version_of_partition != self.partition_epoch:
            return
        self.decide_now(leader, isr)

    def decide_now(self, leader: Replica, isr: set[str]) -> None:
        unfit = set(self.names) - self.active
        if self.kraft and self.v >= (3, 5):
            lives = {n: k.life for n, k in leader.known.items() if k.life is not None}
            unfit |= {n for n, life in lives.items() if life != self.replicas[n].life}
        if self.v >= (3, 3) and isr & unfit:
            leader.wish = None
            return
        if self.kraft:
            self.remember_elr(set(self.isr), isr, None, set(), self.leader)
            if self.v < (3, 6) and not isr >= leader.isr:
                order = [n for n in self.names if n in isr]
                self.recovering = False
                self.register(self.leader, order, self.leader_epoch + 1, False, None)
                if self.v >= (3, 1) and leader.role == "leader":
                    self.move_mark(leader)
                return
        self.write_isr(leader, isr)
        if self.v >= (3, 1):
            self.move_mark(leader)

    def take(self, f: Replica, answer: dict[str, Any]) -> None:
        if (
            f.role != "follower"
            or not f.running
            or f.leader != answer["from"]
            or f.truncating
            or f.end != answer["offset"]
            or answer["thrown_away"]
        ):
            return
        late = answer["term"] not in (None, f.term)
        if late and self.since("3.9.1", "4.0.1", "4.1.0"):
            return
        if answer["error"]:
            if answer["error"] == "FENCED":
                f.fetching = f.fetching and late
            elif answer["error"] == "OUT_OF_RANGE":
                self.out_of_range(f)
            return
        if answer["diverging"] is not None:
            if not self.since("3.4.1", "3.5.0"):
                self.take_mark(f, answer["mark"])
            self.common(f, *answer["diverging"])
            return
        for offset, leader_epoch, content in answer["records"]:
            self.put(f, offset, leader_epoch, content)
        self.take_mark(f, answer["mark"])
        self.raise_start(f, min(answer["start"], f.mark))

    def take_mark(self, f: Replica, mark: int) -> None:
        f.mark = min(mark, f.end)
        if self.v >= (2, 4):
            f.mark = max(f.mark, f.start)

    def out_of_range(self, f: Replica) -> None:
        leader = self.reach(f)
        if leader is None or not self.will_tell(f, leader):
            return
        if leader.end < f.end:
            if not self.unclean and not self.since("2.0.1", "2.1.0"):
                self.end_process(f, "process", None, None)
            else:
                self.cut(f, leader.end)
        elif leader.start > f.end:
            self.restart_log(f, leader.start)

    def common(self, f: Replica, leader_epoch: int | None, end: int | None) -> bool:
        """One round of KIP-279; False when another is needed."""
        if end is None:
            self.cut(f, f.mark)
            return True
        mine = (None, None) if leader_epoch is None else self.end_of_epoch(f, leader_epoch)
        if mine[1] is None:
            self.cut(f, min(end, f.end))
            return True
        if mine[0] != leader_epoch:
            self.cut(f, min(mine[1], f.end))
            return False
        self.cut(f, min(mine[1], end, f.end))
        return True

    def truncate(self, f: Replica) -> None:
        while f.truncating:
            last = f.cache[-1][0] if f.cache else None
            if self.v < (0, 11) or (last is None and self.v >= (2, 0)):
                self.cut(f, f.mark)
                f.truncating = False
                return
            leader = self.reach(f)
            if leader is None:
                return
            if not self.will_tell(f, leader):
                return
            leader_epoch, end = self.end_of_epoch(leader, last)
            if self.v < (2, 0):
                self.cut(f, f.mark if end is None else min(end, f.end))
                f.truncating = False
            else:
                before = (f.end, list(f.cache))
                f.truncating = not self.common(f, leader_epoch, end)
                if before == (f.end, f.cache):
                    return

    def will_tell(self, f: Replica, leader: Replica) -> bool:
        """Whether a broker answers a question about its log other than a fetch."""
        if self.v >= (2, 1):
            theirs = -1 if leader.term is None else leader.term
            if (f.term or 0) < theirs:
                f.fetching = False
            if (f.term or 0) != theirs:
                return False
        return leader.role == "leader"

    def do_receive(self, arguments: list[str], settings: dict[str, str]) -> None:
        f = self.replicas[arguments[0]]
        if f.answer is None:
            raise Cannot
        answer, f.answer = f.answer, None
        self.take(f, answer)

    def do_truncate(self, arguments: list[str], settings: dict[str, str]) -> None:
        self.truncate(self.replicas[arguments[0]])

    def do_stop(self, arguments: list[str], settings: dict[str, str]) -> None:
        self.end_process(self.replicas[arguments[0]], "clean", None, None)

    def do_crash(self, arguments: list[str], settings: dict[str, str]) -> None:
        to = int(settings["to"]) if "to" in settings else None
        self.end_process(self.replicas[arguments[0]], settings["kind"], to, None)

    def end_process(self, r: Replica, kind: str, to: int | None, mark: int | None) -> None:
        if not r.running:
            raise Cannot
        if kind == "clean":
            r.mark_on_disk = r.mark
        if kind == "disk":
            r.records, r.start, r.end, r.cache, r.mark_on_disk = {}, 0, 0, [], 0
        elif to is not None:
            if not r.start <= to <= r.end:
                raise Cannot
            for offset in [o for o in r.records if o >= to]:
                del r.records[offset]
            r.end = to
        r.running, r.clean = False, kind == "clean"
        r.role = r.leader = r.term = r.version_of_partition = r.checked_against = r.answer = None
        r.truncating = False
        r.known, r.isr, r.wish, r.waiting = {}, set(), None, []

    def do_start(self, arguments: list[str], settings: dict[str, str]) -> None:
        r = self.replicas[arguments[0]]
        if r.running:
            raise Cannot
        if (self.kraft or self.v >= (2, 2)) and r.name in self.active:
            self.do_fence([r.name], {})
        if not r.clean:
            for offset in sorted(r.records):
                leader_epoch = r.records[offset][0]
                if not r.cache or leader_epoch > r.cache[-1][0]:
                    r.cache.append((leader_epoch, offset))
        r.cache = [(e, s) for e, s in r.cache if s < r.end] if self.epochs else []
        self.forget_epochs(r)
        r.mark = min(r.mark_on_disk, r.end)
        if self.v >= (2, 4):
            r.mark = max(r.mark, r.start)
        r.running, r.fetching = True, True
        r.life += 1
        if self.elr_on and not r.clean and (r.name in self.isr or r.name in self.elr):
            left = [n for n in self.isr if n != r.name]
            elr = self.elr_after(set(self.isr), set(left), self.elr) - {r.name}
            self.kraft_change(left, elr, self.unclean, False, {r.name})
        if r.name not in self.active:
            self.do_unfence(arguments, {})
        if settings.get("deliver") != "no":
            self.deliver([r.name])

    def do_checkpoint(self, arguments: list[str], settings: dict[str, str]) -> None:
        r = self.replicas[arguments[0]]
        r.mark_on_disk = r.mark

    def do_isolate(self, arguments: list[str], settings: dict[str, str]) -> None:
        self.replicas[arguments[0]].alone = True

    def do_rejoin(self, arguments: list[str], settings: dict[str, str]) -> None:
        self.replicas[arguments[0]].alone = False

    def do_tick(self, arguments: list[str], settings: dict[str, str]) -> None:
        self.now += int(settings["ms"])

    def do_delete_records(self, arguments: list[str], settings: dict[str, str]) -> None:
        leader = self.registered_leader()
        wanted = int(settings["before"]) if "before" in settings else leader.mark
        if wanted <= leader.mark:
            self.raise_start(leader, wanted)
            self.removed |= {r for r in self.committed if r[0] < leader.start}

    def registered_leader(self) -> Replica:
        if self.leader is None or self.replicas[self.leader].role != "leader":
            raise Cannot
        return self.replicas[self.leader]

    # The controller.

    def do_elect(self, arguments: list[str], settings: dict[str, str]) -> None:
        if not arguments:
            self.elect_by_rule(settings.get("cause", "offline"))
            return
        name = arguments[0]
        if not self.replicas[name].running:
            raise Cannot
        if "isr" in settings:
            members = set(settings["isr"].split(","))
        else:
            members = {n for n in self.isr if n in self.active}
        isr = [n for n in self.names if n in members or n == name]
        self.active.add(name)
        unclean = name not in self.isr and name not in self.elr and name != self.leader
        self.remember_elr(set(self.isr), set(isr), name, set())
        if unclean:
            self.elr = set()
        hears = settings["deliver"].split(",") if "deliver" in settings else self.names
        recovering = unclean and self.v >= (3, 2)
        self.register(name, isr, self.leader_epoch + 1, recovering, hears)

    def elect_by_rule(self, cause: str) -> None:
        unclean = self.unclean or cause == "unclean"
        if self.kraft:
            if cause == "preferred":
                self.kraft_change(self.isr, self.elr, False, True, set())
            else:
                self.kraft_change(self.isr, self.elr, unclean, False, set())
            return
        good = [n for n in self.names if n in self.isr and n in self.active]
        if cause == "preferred":
            if self.names[0] in good and self.names[0] != self.leader:
                self.register(self.names[0], list(self.isr), self.leader_epoch + 1, False, None)
            return
        live = [n for n in self.names if n in self.active]
        if self.leader in live:
            return
        if good:
            leader, isr, recovering = good[0], good, False
        elif unclean and live:
            leader, isr, recovering = live[0], [live[0]], self.v >= (3, 2)
        else:
            if self.leader is not None:
                self.register(None, list(self.isr), self.leader_epoch + 1, False, None)
            return
        if (leader, isr) != (self.leader, self.isr):
            self.register(leader, isr, self.leader_epoch + 1, recovering, None)

    def do_fence(self, arguments: list[str], settings: dict[str, str]) -> None:
        name = arguments[0]
        self.active.discard(name)
        if self.kraft:
            left = [n for n in self.isr if n != name]
            if not left and not self.elr_on:
                left = list(self.isr)
            elr = self.elr_after(set(self.isr), set(left), self.elr)
            self.kraft_change(left, elr, self.unclean, False, set())
        elif self.leader == name:
            self.elect_by_rule("offline")
        elif name in self.isr:
            if len(self.isr) == 1 and (self.v >= (1, 1) or not self.unclean):
                return
            left = [n for n in self.isr if n != name]
            self.register(self.leader, left, self.leader_epoch + 1, False, None)

    def do_unfence(self, arguments: list[str], settings: dict[str, str]) -> None:
        self.active.add(arguments[0])
        if self.leader is None:
            self.elect_by_rule("offline")

    def elr_after(self, old: set[str], new: set[str], elr: set[str]) -> set[str]:
        if not self.elr_on or len(new) >= self.least:
            return set()
        return (elr | old) - new

    def remember_elr(
        self,
        old: set[str],
        new: set[str],
        leader: str | None,
        dirty: set[str],
        still: str | None = None,
    ) -> None:
        if not self.elr_on:
            return
        if len(new) >= self.least:
            self.elr, self.last_known = set(), None
            return
        self.elr = (self.elr | old) - new - dirty
        if leader is not None:
            self.last_known = None
        elif not new and self.last_known is None:
            self.last_known = self.leader

    def kraft_change(
        self, isr: list[str], elr: set[str], unclean: bool, preferred: bool, dirty: set[str]
    ) -> None:
        ready = [n for n in self.names if n in self.active and n not in dirty]
        fit = [n for n in ready if n in isr or (not isr and n in elr)]
        order = [n for n in self.names if n in isr]
        leader: str | None
        recovering = uncleanly = False
        if preferred and self.names[0] in fit and self.names[0] != self.leader:
            leader = self.names[0]
        elif self.leader in fit:
            leader = self.leader
        elif fit:
            leader = fit[0]
        elif self.elr_on and not isr and not elr and self.last_known in ready:
            leader, uncleanly = self.last_known, True
        elif unclean and ready:
            leader, uncleanly = ready[0], True
        else:
            leader = None
        if uncleanly and leader is not None:
            order, recovering = [leader], self.v >= (3, 2)
        if leader is not None and not order:
            order = [leader]
        old = set(self.isr)
        shrank = not set(order) >= old
        raised = leader != self.leader or uncleanly or (shrank and self.v < (3, 6))
        before = (self.isr, self.elr, self.last_known)
        self.remember_elr(old, set(order), leader, dirty)
        if uncleanly:
            self.elr, self.last_known = set(), None
        if not raised and before == (order, self.elr, self.last_known):
            return
        self.register(leader, order, self.leader_epoch + int(raised), recovering, None)

    def register(
        self,
        leader: str | None,
        isr: list[str],
        leader_epoch: int,
        recovering: bool,
        hears: list[str] | None,
    ) -> None:
        self.leader, self.isr, self.leader_epoch = leader, isr, leader_epoch
        self.recovering = self.recovering or recovering
        if leader is not None:
            self.last_elected = leader
        self.partition_epoch += 1
        self.deliver(self.names if hears is None else hears)

    def do_deliver(self, arguments: list[str], settings: dict[str, str]) -> None:
        self.deliver(arguments)

    def deliver(self, names: list[str]) -> None:
        hears = sorted((self.replicas[n] for n in names), key=lambda r: r.name != self.leader)
        for r in hears:
            if not r.running or r.alone:
                continue
            if r.term is not None and r.term > self.leader_epoch:
                continue
            if r.term == self.leader_epoch and r.version_of_partition == self.partition_epoch:
                continue
            if r.name == self.leader:
                self.lead(r)
            else:
                self.follow(r)
        for r in hears:
            if r.truncating:
                self.truncate(r)
        self.settle()

    def lead(self, r: Replica) -> None:
        if r.role == "leader" and r.term == self.leader_epoch:
            r.version_of_partition, r.isr, r.wish = self.partition_epoch, set(self.isr), None
            self.move_mark(r)
            return
        old = r.known if r.role == "leader" and self.v >= (0, 9) else {}
        r.role, r.leader, r.term = "leader", r.name, self.leader_epoch
        r.version_of_partition, r.isr, r.wish = self.partition_epoch, set(self.isr), None
        r.truncating, r.checked_against = False, None
        r.first_of_term = r.end
        if self.since("2.0.1", "2.1.0"):
            self.remember_epoch(r, self.leader_epoch, r.end)
        r.known = {}
        for name in self.names:
            if name == r.name:
                continue
            r.known[name] = known = Known(self.now if name in self.isr else 0)
            if name in old:
                known.end, known.life = old[name].end, old[name].life
                known.fetched, known.seen = known.caught_up, r.end
        self.begin_term(r)
        self.move_mark(r)

    def begin_term(self, r: Replica) -> None:
        """A later valid leader must hold all that was committed before."""
        assert r.term is not None
        if (r.term, r.name) in self.terms:
            self.terms[(r.term, r.name)] += 1
        else:
            self.terms[(r.term, r.name)] = 0
        r.times_led[r.term] = self.terms[(r.term, r.name)]
        for record in self.committed:
            if record[0] >= r.start and r.records.get(record[0]) != record[1:]:
                self.lost.add(record)
        self.promise(r)  # A high watermark that it comes with is a valid leader's from now on.

    def missing(self) -> set[tuple[int, int, str]]:
        """Committed records that a later leader began without, or the one that counts now lacks."""
        if self.leader is not None:
            counts = self.replicas[self.leader]
        else:
            counts = self.replicas[self.last_elected]
        return {
            record
            for record in self.committed
            if record[0] >= counts.start
            and record not in self.removed
            and (record in self.lost or counts.records.get(record[0]) != record[1:])
        }

    def follow(self, r: Replica) -> None:
        led = r.role == "leader"
        repeated = r.role == "follower" and r.term == self.leader_epoch and r.leader == self.leader
        r.role = "follower"
        if led:
            self.answer_producers(r)
        r.leader, r.term = self.leader, self.leader_epoch
        r.version_of_partition = self.partition_epoch
        r.known, r.wish, r.isr = {}, None, set()
        if self.leader is None or repeated:
            return
        r.fetching = True
        old = r.checked_against
        r.checked_against = (self.leader, self.leader_epoch)
        if old is None:
            due = True
        elif self.v >= (2, 1):
            due = self.leader_epoch > old[1]
        elif self.since("2.0.1", "2.1.0"):
            due = self.leader != old[0] or self.leader_epoch > old[1] + 1
        else:
            due = self.leader != old[0]
        if due:
            r.truncating = self.v < (2, 8) or not r.cache
            if r.truncating and r.answer is not None and self.v >= (0, 11):
                r.answer["thrown_away"] = True

    def do_isr(self, arguments: list[str], settings: dict[str, str]) -> None:
        leader = self.registered_leader()
        if arguments == ["check"]:
            gone = set()
            for name in leader.isr - {leader.name}:
                k = leader.known[name]
                late = self.now - k.caught_up > self.lag
                if self.v < (0, 9):
                    out = late or (k.end is not None and leader.end - k.end > 4000)
                elif self.v < (2, 1):
                    out = late
                else:
                    out = late and k.end != leader.end
                if out:
                    gone.add(name)
            if gone:
                self.wish(leader, leader.isr - gone)
        else:
            gone = set(settings["remove"].split(","))
            for name in gone:
                known = leader.known[name]
                known.caught_up, known.fetched, known.seen = 0, 0, None
            self.wish(leader, leader.isr - gone)
        self.settle()

"""Which of several brokers' stretches of lines about one name are of the same life of the topic.

A life that only some brokers had a replica of is missing from the others' lines: two brokers that
each saw four lives need not have seen the same four. By number they are laid side by side only
where nothing speaks against it: the topic ids, the first leader, and the moments at which the logs
were created and set aside.
"""

from collections.abc import Iterator
from heapq import merge

from replication.evidence.broker_logs.births import first_leader
from replication.evidence.joining.topic_lives import GONE, ON_DISK, Life, Stretch

# The brokers of one life create its logs, and set them aside, within so many milliseconds.
_AT_ONCE = 500
# Pairs of places: in the lives that are known, and in one broker's stretches.
_Pairs = list[tuple[int, int]]
# How much more a broker's clock shows than the first one's, as far as that is known.
_Ahead = dict[int, int]


def lives_of_topic(by_broker: dict[int, list[Stretch]], *, compare: bool = False) -> list[Life]:
    """The lives that all brokers' stretches tell, oldest first.

    A broker that saw as many lives as any saw the same ones, and one that saw fewer is laid beside
    them by printed ids, else by the nearest begin; unless that makes one life of two. compare: the
    brokers' clocks may be held against each other.
    """
    lives: list[Life] = []
    ahead: _Ahead = {}
    ordered = sorted(by_broker.items(), key=lambda each: (-len(each[1]), each[0]))
    for broker, found in ordered:
        pairs = _beside(lives, found) if lives else []
        shift = _shift(lives, found, ahead) if lives else 0
        if shift is not None:
            ahead[broker] = shift
        if len(lives) > 1 and pairs:
            pairs = _without_two_in_one(lives, broker, found, pairs, ahead, compare=compare)
        lives = _joined(lives, broker, found, pairs, ahead)
    return lives


def _joined(
    lives: list[Life], broker: int, found: list[Stretch], pairs: _Pairs, ahead: _Ahead
) -> list[Life]:
    """The lives with the broker's stretches, each in its pair's life or in one of its own."""
    result: list[Life] = []
    life_at = stretch_at = 0
    for life_place, place in [*pairs, (len(lives), len(found))]:
        own = [Life() for _ in found[stretch_at:place]]
        for life, stretch in zip(own, found[stretch_at:place], strict=True):
            _join(life, broker, stretch)
        result += merge(lives[life_at:life_place], own, key=lambda life: _begun(life, ahead) or 0)
        if place < len(found):
            _join(lives[life_place], broker, found[place])
            result.append(lives[life_place])
        life_at, stretch_at = life_place + 1, place + 1
    return result


def _join(life: Life, broker: int, stretch: Stretch) -> None:
    life.stretches[broker] = stretch
    life.topic_id = life.topic_id or stretch.topic_id
    if stretch.begins and life.begun_at is None:
        life.begun_at = stretch.first_at


def _beside(lives: list[Life], found: list[Stretch]) -> _Pairs:
    """The life that each stretch of a broker would be of, had others seen all that it saw."""
    if len(lives) <= len(found):
        return [(number, number) for number in range(len(lives))]
    return list(_each_beside(lives, found))


def _each_beside(lives: list[Life], found: list[Stretch]) -> Iterator[tuple[int, int]]:
    lowest = 0
    for number, stretch in enumerate(found):
        highest = len(lives) - (len(found) - number)
        possible = range(lowest, highest + 1)
        named = [i for i in possible if stretch.topic_id and lives[i].topic_id == stretch.topic_id]
        which = named[0] if named else _by_clock(lives, stretch, possible)
        yield which, number
        lowest = which + 1


def _by_clock(lives: list[Life], stretch: Stretch, possible: range) -> int:
    at = stretch.first_at
    begins = [(i, lives[i].begun_at) for i in possible]
    told = [(i, begun) for i, begun in begins if begun is not None]
    if at is None or not told:
        return possible[-1]
    if stretch.begins:
        return min(told, key=lambda each: abs(each[1] - at))[0]
    before = [i for i, begun in told if begun - 1_000 <= at]
    return before[-1] if before else possible[0]


def _without_two_in_one(
    lives: list[Life],
    broker: int,
    found: list[Stretch],
    pairs: _Pairs,
    ahead: _Ahead,
    *,
    compare: bool,
) -> _Pairs:
    """The pairs, or others where these cannot all be of one life each.

    By what each life has only once; by clocks only where they compare, or where more logs were
    created at once then: a clock may be set back between two lives.
    """
    every = [(i, j) for i in range(len(lives)) for j in range(len(found))]
    two = {(i, j) for i, j in every if _are_two(lives[i], broker, found[j])}
    apart = two | {(i, j) for i, j in every if _are_apart(lives[i], broker, found[j], ahead)}
    if not apart.intersection(pairs):
        return pairs
    better = _aligned(lives, found, apart, ahead)
    more = _at_once(lives, found, better, ahead) > _at_once(lives, found, pairs, ahead)
    return better if compare or more or two.intersection(pairs) else pairs


def _are_two(life: Life, broker: int, stretch: Stretch) -> bool:
    """Whether the topic ids differ, or the leaders in leader epoch 0 of one partition do."""
    if life.topic_id and stretch.topic_id and life.topic_id != stretch.topic_id:
        return True
    before, since = _first_led(life.stretches), _first_led({broker: stretch})
    for partition in before.keys() & since.keys():
        (led, followed), (also_led, also_followed) = before[partition], since[partition]
        if led and also_led and not led & also_led:
            return True
        if (led and led <= also_followed - also_led) or (also_led and also_led <= followed - led):
            return True
    return False


def _first_led(stretches: dict[int, Stretch]) -> dict[int | None, tuple[set[int], set[int]]]:
    """By partition the leaders of its first leader epoch, and the brokers that followed."""
    result: dict[int | None, tuple[set[int], set[int]]] = {}
    for writer, stretch in stretches.items():
        for fact in stretch.facts:
            first = first_leader(fact)
            led, followed = result.setdefault(fact.partition, (set(), set()))
            if first == "became_follower":
                followed.add(writer)
            elif first is not None:
                led.add(first if isinstance(first, int) else writer)
    return result


def _shift(lives: list[Life], found: list[Stretch], ahead: _Ahead) -> int | None:
    """What the broker's clock shows more than the first one's; None where nothing tells."""
    every = [(i, j) for i in range(len(lives)) for j in range(len(found))]
    differences = _differences(lives, found, every, ahead)
    counted = [(sum(abs(d - e) <= _AT_ONCE for d in differences), -abs(e)) for e in differences]
    if not counted:
        return None
    count, near = max(counted)
    agrees = count > 1 or -near <= _AT_ONCE
    return differences[counted.index((count, near))] if agrees else None


def _differences(
    lives: list[Life], found: list[Stretch], pairs: _Pairs, ahead: _Ahead
) -> list[int]:
    """How much later the stretches' logs were created than the lives', by the broker's clock."""
    result = []
    for i, j in pairs:
        begun, at = _begun(lives[i], ahead), _created(found[j])
        if begun is not None and at is not None:
            result.append(at - begun)
    return result


def _begun(life: Life, ahead: _Ahead) -> int | None:
    """When the first of its logs was created, by the first broker's clock."""
    known = [(b, _created(stretch)) for b, stretch in life.stretches.items() if b in ahead]
    return min((at - ahead[b] for b, at in known if at is not None), default=None)


def _created(stretch: Stretch) -> int | None:
    """When the broker created the topic's first log in it."""
    return next((f.at for f in stretch.facts if f.kind == "log_created"), None)


def _at_once(lives: list[Life], found: list[Stretch], pairs: _Pairs, ahead: _Ahead) -> int:
    """How many of the pairs were created at once, by some one difference of the clocks."""
    differences = _differences(lives, found, pairs, ahead)
    return max((sum(abs(d - e) <= _AT_ONCE for d in differences) for e in differences), default=0)


def _are_apart(life: Life, broker: int, stretch: Stretch, ahead: _Ahead) -> bool:
    """Whether the one's logs had been set aside when the other's were created, both being of the
    topic's first leader epoch: a replica that is moved there later is of a later one."""
    if broker not in ahead:
        return False
    for writer, other in life.stretches.items():
        if writer not in ahead or not (_is_first(other) and _is_first(stretch)):
            continue
        more = ahead[broker] - ahead[writer]
        for early, late, shift in ((other, stretch, more), (stretch, other, -more)):
            ended, created = _set_aside(early), _created(late)
            if ended is not None and created is not None and created - shift > ended + _AT_ONCE:
                return True
    return False


def _is_first(stretch: Stretch) -> bool:
    epochs = (f.fields.get("leader_epoch") for f in stretch.facts)
    return next((e for e in epochs if isinstance(e, int)), None) == 0


def _set_aside(stretch: Stretch) -> int | None:
    """When the broker renamed the last of its logs, where it did nothing with the topic after."""
    ended = None
    for fact in reversed(stretch.facts):
        if fact.kind not in ON_DISK:
            break
        if fact.kind in GONE and fact.kind != "log_deleted" and fact.at is not None:
            ended = fact.at if ended is None else max(ended, fact.at)
    return ended


def _aligned(
    lives: list[Life], found: list[Stretch], apart: set[tuple[int, int]], ahead: _Ahead
) -> _Pairs:
    """The pairs of lives and stretches in their order that are not apart: as many as there can be,
    and of those the ones that were created nearest to each other."""
    shift = _shift(lives, found, ahead) or 0
    best: dict[tuple[int, int], tuple[int, int, _Pairs]] = {}
    for i in range(len(lives), -1, -1):
        for j in range(len(found), -1, -1):
            if i == len(lives) or j == len(found):
                best[i, j] = (0, 0, [])
                continue
            choices = [best[i + 1, j], best[i, j + 1]]
            if (i, j) not in apart:
                far = sum(abs(d - shift) for d in _differences(lives, found, [(i, j)], ahead))
                count, near, later = best[i + 1, j + 1]
                choices.append((count + 1, near - far, [(i, j), *later]))
            best[i, j] = max(choices, key=lambda each: each[:2])
    return best[0, 0][2]

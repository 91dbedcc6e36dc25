"""Counts the steps of a call, so that a test can hold how they grow: lines of ours that run.

Never time: what else runs on a machine changes that, and these counts not at all.
"""

import sys
from collections import Counter
from collections.abc import Callable
from types import CodeType, FrameType
from typing import Any

PACKAGE = "/replication/"
SIZES = (125, 250, 500)
LARGE_SIZES = (250, 500, 1000, 2000)
# Twice the input may take so many times the steps.
PER_DOUBLING = 2.2


def steps_of(call: Callable[[], Any]) -> Counter[CodeType]:
    """How many lines of the package ran, by the function they stand in."""
    found: Counter[CodeType] = Counter()

    def line(frame: FrameType, what: str, _: Any) -> Any:
        if what == "line":
            found[frame.f_code] += 1
        return line

    def entered(frame: FrameType, what: str, _: Any) -> Any:
        return line if PACKAGE in frame.f_code.co_filename else None

    before = sys.gettrace()
    sys.settrace(entered)
    try:
        call()
    finally:
        sys.settrace(before)
    return found


def grows(make: Callable[[int], Callable[[], Any]], sizes: tuple[int, ...] = SIZES) -> list[str]:
    """What takes more than PER_DOUBLING times the steps for twice the size, in words.

    make: gives the call for a size."""
    counts = [steps_of(make(size)) for size in sizes]
    said = []
    for size, one, two in zip(sizes[1:], counts, counts[1:], strict=False):
        few, many = one.total(), two.total()
        if many > PER_DOUBLING * few:
            more = {code: two[code] - 2 * one[code] for code in two}
            [(worst, _)] = Counter(more).most_common(1)
            said.append(
                f"{size}: {many} steps, {many / few:.2f} times as many as half of it; most of it "
                f"in {worst.co_qualname} of {worst.co_filename.rpartition('/')[2]}: "
                f"{one[worst]}, then {two[worst]}"
            )
    return said

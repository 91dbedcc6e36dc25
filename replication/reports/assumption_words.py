"""What an answer takes for granted, in the words of a person: a sentence, and what would tell."""

from typing import Any

from replication.protocol.histories.assumptions import ASSUMPTIONS
from replication.reports.natural import names

# In the headline itself; more are told below it.
MOST_IN_HEADLINE = 1


def assumptions_of(answer: dict[str, Any]) -> list[dict[str, Any]]:
    """The assumptions that some verdict or loss rests on: name, sentence, what withdraws each, what
    makes it unnecessary, and how many verdicts and losses name it."""
    used: dict[str, int] = {}
    for row in (*answer["verdicts"], *answer["losses"]):
        for name in row.get("assuming", ()):
            used[name] = used.get(name, 0) + 1
    return [
        {
            "name": name,
            "sentence": a.sentence,
            "withdrawn_by": a.withdrawn_by,
            "unnecessary_with": a.unnecessary_with,
            "rows": used[name],
        }
        for name, a in ASSUMPTIONS.items()
        if name in used
    ]


def taking_it_that(rows: list[dict[str, Any]], beside: frozenset[str] = frozenset()) -> str:
    """`taking it that ..` of what verdicts rest on; empty where they rest on nothing but the
    evidence. beside: what is said otherwise."""
    named = {n for r in rows for n in r.get("assuming", ())} - beside
    found = [n for n in ASSUMPTIONS if n in named]
    if not found:
        return ""
    if len(found) > MOST_IN_HEADLINE:
        more = " more" if beside else ""
        return f"taking {len(found)}{more} things for granted (below)"
    return f"taking it that {ASSUMPTIONS[found[0]].sentence}"


def granted_text(answer: dict[str, Any]) -> list[str]:
    """A paragraph on what was taken for granted, and what to hand over so that it need not be."""
    used = answer.get("assumptions", [])
    if not used:
        return []
    lines = ["Taken for granted, since nothing in the evidence speaks against it (--strict takes "
             "nothing for granted):"]  # fmt: skip
    every = {_identity(v) for v in answer["verdicts"]}
    for a in used:
        rows = {_identity(v): v for v in answer["verdicts"] if a["name"] in v["assuming"]}
        where = "" if len(rows) == len(every) or not rows else f" ({names(list(rows.values()), 3)})"
        sentence = a["sentence"]
        lines += [
            f"  {sentence[:1].upper()}{sentence[1:]}{where}.",
            f"    Not needed with: {_still_to_get(a['unnecessary_with'], answer)}.",
        ]
    return [*lines, ""]


def _still_to_get(needed: str, answer: dict[str, Any]) -> str:
    """What would make an assumption unnecessary, but for what was handed over and did not."""
    files = answer.get("inventory", {}).get("files", ())
    if not any("acknowledgement log" in file["kind"] for file in files):
        return needed
    left = [each for each in needed.split(", or ") if not each.startswith("an acknowledgement log")]
    return ", or ".join(left) or needed


def _identity(row: dict[str, Any]) -> tuple[Any, ...]:
    return (row["cluster_id"], row["topic"], row["topic_id"], row["partition"])

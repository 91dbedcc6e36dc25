"""docs/judging.md: its table of assumptions is the one that is in force."""

from pathlib import Path

from replication.protocol.histories.assumptions import ASSUMPTIONS

PAGE = Path(__file__).parents[2] / "docs" / "judging.md"
BEGIN = "<!-- assumptions: made by `tests/docs/test_judging.py` from histories/assumptions.py -->\n"


def table() -> str:
    """The assumptions as rows. `python -m tests.docs.test_judging` writes them into the page."""
    head = "| name | taken for granted | withdrawn by | not needed with |\n|---|---|---|---|\n"
    return head + "".join(
        f"| `{a.name}` | {a.sentence} | {a.withdrawn_by} | {a.unnecessary_with} |\n"
        for a in ASSUMPTIONS.values()
    )


def test_the_table_of_assumptions_is_the_one_in_force() -> None:
    told = PAGE.read_text().partition(BEGIN)[2].partition("<!-- end -->")[0]
    assert told == table()


if __name__ == "__main__":
    before, _, rest = PAGE.read_text().partition(BEGIN)
    PAGE.write_text(before + BEGIN + table() + "<!-- end -->" + rest.partition("<!-- end -->")[2])

"""docs/start_here.md: every command is carried out, and its answer is the one that is shown."""

from tests.docs.guided import PAGE, STEP, carried_out


def test_each_command_of_the_guided_incident_answers_as_shown() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert len(STEP.findall(page)) > 6
    assert carried_out(page) == page, "run: python -m tests.docs.guided --write"

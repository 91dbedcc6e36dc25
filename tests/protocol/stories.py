"""Stories of the machine in the commands of scenario text: one partition, told line by line."""

from collections.abc import Iterable

from replication.machine.scenario import Runner, Story
from replication.machine.scenario_text import Stanza, parse, parse_command

NAMES = ("A", "B", "C")


def begun(given: str, names: Iterable[str] = NAMES) -> Story:
    """The partition before the first command: empty replicas, of which A leads."""
    command = parse_command(given, 1)
    command.lines = [(2 + n, f"{name}{' ' if n else '*'} e0  |") for n, name in enumerate(names)]
    return Story(command, None, None)


def tell(story: Story, *lines: str) -> None:
    """Commands, one after the other."""
    for line in lines:
        story.tell(parse_command(line, 1))


def story_of(given: str, *lines: str) -> Story:
    """The story that commands tell. given: the settings, without the ISR, which is all three."""
    story = begun(f"given isr=A,B,C {given}")
    tell(story, *lines)
    return story


def played(text: str) -> Story:
    """The story of a scenario file's text."""
    runner = Runner()
    for part in parse(text):
        if isinstance(part, Stanza):
            runner.run(part)
    assert runner.story is not None
    return runner.story

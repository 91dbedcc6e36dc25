"""Every scenario file comes out as written; mistakes in one are named by line and column."""

import re
from pathlib import Path

import pytest

from replication.machine.scenario import run_scenario
from replication.machine.scenario_text import COMMANDS, ScenarioError, parse, render
from replication.protocol.ground.picture import PictureError, draw, read, read_row
from replication.protocol.rules import RULES
from replication.scenario_command import main

SCENARIOS = Path(__file__).parent.parent / "scenarios"
FILES = sorted(SCENARIOS.rglob("*.txt"))


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_a_scenario_comes_out_as_written(path: Path) -> None:
    text = path.read_text(encoding="utf-8")

    same, actual = run_scenario(text)

    assert actual == text
    assert same


def test_every_scenario_of_the_catalogue_is_here() -> None:
    stems = {p.stem for p in FILES}

    for number in range(1, 17):
        assert any(s.startswith(f"s{number:02}_") for s in stems), f"S{number}"


def test_every_command_is_used_by_a_scenario() -> None:
    text = "\n".join(p.read_text(encoding="utf-8") for p in FILES)

    unused = [name for name in COMMANDS if not re.search(rf"^{name}\b", text, re.MULTILINE)]

    assert unused == []


def test_every_rule_names_a_scenario_that_shows_it() -> None:
    for rule in RULES:
        names = re.findall(r"\b(\w+)\.txt", rule.__doc__ or "")
        assert names, rule.__name__
        for name in names:
            assert (SCENARIOS / f"{name}.txt").exists(), f"{rule.__name__} names {name}.txt"


GIVEN = "given isr=A,B kafka=2.8.0\nA* e0  0:a |\nB  e0  0:a |\n----\nok\n\n"


def given(settings: str, *rows: str) -> str:
    """Where a story begins, in the logs of these rows."""
    return "\n".join([f"given {settings}", *(rows or ["A* e0  |"]), "----", ""])


MISTAKES = [
    ("no divider", "given isr=A kafka=2.8.0\nA* e0  |\n", 3, 1, "expected ----"),
    ("unknown command", GIVEN + "fech A\n----\n", 7, 1, "unknown command 'fech'"),
    ("unknown replica", GIVEN + "fetch C\n----\n", 7, 7, "unknown replica 'C'"),
    ("missing argument", GIVEN + "fetch\n----\n", 7, 6, "expected fetch BROKER"),
    ("too many arguments", GIVEN + "fetch A B\n----\n", 7, 9, "expected fetch BROKER"),
    ("unknown setting", GIVEN + "fetch B ofset=1\n----\n", 7, 9, "unknown setting 'ofset'"),
    ("no number", GIVEN + "fetch B offset=one\n----\n", 7, 16, "offset must be a number"),
    ("no switch", GIVEN + "fetch B at_once=maybe\n----\n", 7, 17, "at_once must be yes or no"),
    ("empty value", GIVEN + "fetch B response=\n----\n", 7, 18, "response needs a value"),
    ("set twice", GIVEN + "fetch B max=1 max=2\n----\n", 7, 15, "max is set twice"),
    ("no given", "fetch A\n----\n", 1, 1, "expected given"),
    ("no version", given("isr=A"), 1, 1, "given needs kafka=VERSION"),
    ("unknown version", given("isr=A kafka=9.9"), 1, 19, "not known here"),
    ("no picture", "given isr=A kafka=2.8.0\n----\n", 1, 1, "expected the lines of a picture"),
    ("bad cell", given("isr=A kafka=2.8.0", "A* e0  0;m |"), 2, 8, "expected a cell"),
    ("bad epoch", given("isr=A kafka=2.8.0", "A* e0x  0:m |"), 2, 4, "expected eN"),
    ("two marks", given("isr=A kafka=2.8.0", "A* e0  0:m | |"), 2, 14, "second high watermark"),
    ("drawn twice", given("isr=A kafka=2.8.0", "A* e0  |", "A  e0  |"), 3, 1, "drawn twice"),
    ("two leaders", given("isr=A kafka=2.8.0", "A* e0  |", "B* e0  |"), 1, 1, "two replicas lead"),
    ("unknown in isr", given("isr=C kafka=2.8.0"), 1, 11, "unknown replica 'C'"),
    ("bad record", GIVEN + "produce A b*0\n----\n", 7, 11, "expected RECORD"),
    ("bad kind", GIVEN + "crash A kind=fire\n----\n", 7, 14, "kind must be one of"),
    ("bad isr word", GIVEN + "isr now\n----\n", 7, 5, "expected check, commit or refuse"),
    ("no command", GIVEN + "# nothing\n----\n", 8, 1, "expected a command"),
    ("bad response", GIVEN + "fetch B response=lots\n----\n", 7, 18, "response must be one of"),
    ("bad acks", GIVEN + "produce A b acks=most\n----\n", 7, 18, "acks must be a number or all"),
    ("bad request", GIVEN + "fetch B request=lost\n----\n", 7, 17, "request must be one of"),
    ("bad epochs", GIVEN + "crash A kind=disk epochs=x\n----\n", 7, 26, "epochs must be one of"),
    ("bad isolation", GIVEN + "consume A isolation=x\n----\n", 7, 21, "isolation must be one of"),
    ("bad near", GIVEN + "consume A offset=0 near=C\n----\n", 7, 25, "unknown replica 'C'"),
    ("bad late", GIVEN + "deliver A late=x\n----\n", 7, 16, "late must be a number"),
    ("bad proposal", GIVEN + "propose A isr=A,C\n----\n", 7, 15, "unknown replica 'C'"),
    ("no proposal", GIVEN + "propose A\n----\n", 7, 1, "expected isr=A,B"),
    ("bad offsets", GIVEN + "compact A offsets=1,x\n----\n", 7, 19, "expected offsets=N,N"),
    ("no offsets", GIVEN + "compact A\n----\n", 7, 1, "expected offsets=N,N, found nothing"),
    ("bad cleanup", given("isr=A kafka=2.8.0 cleanup=x"), 1, 33, "cleanup must"),
    ("too much", GIVEN + "recreate A\n----\n", 7, 10, "expected recreate"),
    ("bad invariant", GIVEN + "check log_maching\n----\n", 7, 7, "unknown invariant"),
    ("bad versions", given("isr=A kafka=2.8.0 versions=A"), 1, 34, "BROKER:VERSION"),
    (
        "no kraft mode",
        given("isr=A kafka=3.9.1 controller=kraft versions=A:2.7.2"),
        1,
        51,
        "no KRaft mode",
    ),
    (
        "speaks newer",
        given("isr=A kafka=3.9.1 inter_broker=3.9 versions=A:3.5.2"),
        1,
        51,
        "newer than Kafka 3.5.2",
    ),
    ("upgrade to nothing", GIVEN + "upgrade A\n----\n", 7, 1, "upgrade needs kafka=VERSION"),
    ("upgrade to unknown", GIVEN + "upgrade A kafka=9.9\n----\n", 7, 17, "not known here"),
    ("broker's elr", GIVEN + "upgrade A kafka=2.8.0 elr=on\n----\n", 7, 27, "the controller's"),
    ("elr early", GIVEN + "upgrade controller kafka=2.8.0 elr=on\n----\n", 7, 26, "need Kafka"),
    ("bad remedy", GIVEN + "rewind kafka=2.8.0 with=x\n----\n", 7, 25, "'x' is no remedy"),
]


@pytest.mark.parametrize(
    ("text", "line", "column", "says"), [m[1:] for m in MISTAKES], ids=[m[0] for m in MISTAKES]
)
def test_a_mistake_is_named_with_its_place(text: str, line: int, column: int, says: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        run_scenario(text)

    assert (caught.value.line, caught.value.column) == (line, column)
    assert says in str(caught.value)


def test_what_cannot_happen_is_output_and_no_mistake_of_the_file() -> None:
    same, text = run_scenario(GIVEN + "produce B b\nstart A\n----\n")

    assert not same
    assert "cannot: B does not lead\ncannot: A runs already\n" in text


def test_a_file_without_stanzas_and_an_empty_one_are_unchanged() -> None:
    assert render(parse("# Only prose.\n")) == "# Only prose.\n"
    assert run_scenario("")[0]


def test_a_picture_is_read_as_it_is_drawn() -> None:
    contents: list[str] = []
    lines = [
        "A   e-   0:m1 -:m2 |",
        "BB* e12  [3] 0:x*2 | 0:x*38 .*2 1:y",
        "C!  e0   |2 [5]",
        "D   e0   0:m1 ? |",
        "D   e0   0:m1 |7",
    ]
    rows = read([line for line in lines if "?" not in line], contents)

    drawn = draw(rows, lambda c: contents[c])

    assert drawn == [line for line in lines if "?" not in line]
    with pytest.raises(PictureError) as caught:
        read_row(lines[3], contents)
    assert caught.value.column == 15


def test_the_command_takes_files_and_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(path) for path in SCENARIOS.iterdir()]) == 0
    assert main([str(tmp_path)]) == 2
    assert "a folder without scenario files" in capsys.readouterr().err


def test_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "a.txt"
    path.write_text(GIVEN + "fetch B\n----\nnothing\n")

    assert main([str(path)]) == 1
    out = capsys.readouterr().out
    assert "-nothing\n" in out
    assert "+A* e0  0:a |" in out
    assert main([str(path), "--rewrite"]) == 0
    assert main([str(path)]) == 0
    assert main([str(path), "--kafka", "0.9.0.1"]) == 0
    assert main([str(path), str(tmp_path / "none.txt")]) == 2
    path.write_text("fetch B\n----\n")
    assert main([str(path)]) == 2
    assert "line 1, column 1: expected given" in capsys.readouterr().err

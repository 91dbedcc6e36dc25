"""The plan of a drill: the page's example is one, and what is wrong with one is said."""

import re
from pathlib import Path

import pytest

from replication.drill.plan import BadPlan, read_plan
from replication.drill.words import many_enough
from replication.paths import project_root

LEAST = 'bootstrap = "b:9092"\nout = "out"\n[[topic]]\nname = "t"\n'


def written(folder: Path, text: str) -> Path:
    path = folder / "plan.toml"
    path.write_text(text)
    return path


def test_the_example_of_the_page_is_a_plan(tmp_path: Path) -> None:
    page = (project_root() / "docs" / "drill.md").read_text()
    (example,) = re.findall(r"```toml\n(.*?)```", page, re.DOTALL)
    plan = read_plan(written(tmp_path, example))
    assert plan.out.parent == tmp_path.resolve()
    assert [topic.name for topic in plan.topics] == ["drill-orders", "drill-audit"]
    assert plan.topics[0].settings["min.insync.replicas"] == "2"
    assert [step.run is None for step in plan.faults] == [True, False]
    assert plan.collect.take["broker-1"][0].is_absolute()
    assert plan.collect.steps


def test_what_is_not_said_has_a_value(tmp_path: Path) -> None:
    plan = read_plan(written(tmp_path, LEAST))
    assert (plan.load.rate, plan.load.acks, plan.load.sample) == (1000, "all", 1.0)
    assert (plan.topics[0].create, plan.topics[0].replication) == (True, 3)
    assert plan.evidence == tmp_path.resolve() / "out" / "evidence"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (LEAST + "partitons = 3", r"\[\[topic\]\] 1 partitons \(did you mean partitions\?\)"),
        (LEAST + "[laod]\nrate = 1", r"unknown key laod \(did you mean load\?\)"),
        (LEAST + "[load]\nrate = '1'", r"\[load\] rate: '1' is not a whole number from 1 on"),
        (LEAST + "[load]\nacks = 2", "acks: 2 is none of 0, 1, all"),
        (LEAST + "[load]\nsample = 1.5", "sample: expected a share"),
        (LEAST + "[load]\nacks = 1\nidempotent = true", "only with acks = all"),
        (LEAST + "[[fault]]\npause = 1", "expected either say"),
        (LEAST + "[[fault]]\nsay = 'a'\nrun = 'b'", r"\[\[fault\]\] 1: expected either say"),
        (LEAST + "[collect]\nplatform = 'dokcer'", r"no dokcer \(did you mean docker\?\)"),
        (LEAST + "[collect.take]\n'../x' = '/var'", "expected the bare name of a folder"),
        (LEAST + "[[collect.step]]\nrum = 'b'", "expected either say"),
        (LEAST + "create = false\npartitions = 2", "only with create = true"),
        (LEAST + "[[topic]]\nname = 't'", "t is there twice"),
        ('bootstrp = "b"\nout = "o"', r"bootstrap is missing \(did you mean bootstrp\?\)"),
        ('bootstrap = "b"\nout = "o"', r"no \[\[topic\]\]"),
        ("x =", "no TOML"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(BadPlan, match=said) as raised:
        read_plan(written(tmp_path, text))
    assert str(raised.value).startswith(str(tmp_path / "plan.toml"))


def test_a_plan_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadPlan, match="No such file"):
        read_plan(tmp_path / "none.toml")


def test_how_many_keys_a_sample_needs_to_notice() -> None:
    """By the chance itself: with so many keys it is reached, with one fewer it is not."""
    for sample in (0.01, 0.1, 0.5, 0.89):
        enough = many_enough(sample)
        assert 1 - (1 - sample) ** enough >= 0.9 > 1 - (1 - sample) ** (enough - 1)
    assert many_enough(0.9) == many_enough(1) == 1

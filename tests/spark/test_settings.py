"""Settings: default, profile, flag, in that order; what is unknown or wrong is refused by name."""

import re
from pathlib import Path

import pytest

from replication.paths import project_root
from replication.spark.settings import SettingsError, explained, load
from replication.spark.stream import FLAGS, parser


def folder_with(tmp_path: Path, extra: str = "", **profiles: str) -> Path:
    default = (project_root() / "conf" / "default.toml").read_text()
    (tmp_path / "default.toml").write_text(default + extra)
    for name, text in profiles.items():
        (tmp_path / f"{name}.toml").write_text(text)
    return tmp_path


def test_a_flag_beats_the_profile_and_the_profile_beats_the_default(tmp_path: Path) -> None:
    folder = folder_with(tmp_path, fast="held_limit = 7\nwrite_threads = 2\n")
    assert load({}, folder).held_limit == 10_000
    assert load({"profile": "fast"}, folder).held_limit == 7
    both = load({"profile": "fast", "held_limit": "9"}, folder)
    assert (both.held_limit, both.write_threads) == (9, 2)


def test_every_shipped_profile_loads() -> None:
    shipped = [p.stem for p in (project_root() / "conf").glob("*.toml")]
    assert {"default", "small-batches"} <= set(shipped)
    for name in shipped:
        load({"profile": name})


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("colour = 1\n", "unknown key 'colour'"),
        ("held_limit = 'many'\n", "held_limit = 'many' is no int"),
        ("held_limit = true\n", "held_limit = True is no int"),
        ("held_limit = 0\n", "held_limit must be at least 1"),
        ("trigger = 'sometimes'\n", "trigger 'sometimes' is neither"),
        ("= 3\n", "wrong.toml"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(tmp_path: Path, text: str, message: str) -> None:
    folder = folder_with(tmp_path, wrong=text)
    with pytest.raises(SettingsError, match=message):
        load({"profile": "wrong"}, folder)


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        ({"profile": "none"}, "no profile 'none'"),
        ({"state_shards": "x"}, "--state-shards 'x' is no int"),
        ({"fail_on_data_loss": "maybe"}, "neither true nor false"),
        ({"trigger": "-5 seconds"}, "neither available-now nor an interval"),
    ],
)
def test_a_wrong_flag_is_refused_by_name(flags: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        load(flags)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5 seconds", 5), ("500 ms", 0.5), ("2 minutes", 120), ("3", 3), ("250 milliseconds", 0.25)],
)
def test_intervals_are_read(text: str, seconds: float) -> None:
    assert load({"trigger": text}).interval_seconds == seconds


def test_the_help_of_a_flag_is_the_comment_of_its_setting() -> None:
    told = explained(project_root() / "conf" / "default.toml")
    assert set(FLAGS) <= set(told)
    helps = {action.dest: action.help for action in parser()._actions}
    assert {name: helps[name] for name in FLAGS} == {name: told[name] for name in FLAGS}
    assert all(re.match(r"[A-Z a-z-]+:? .{20,} Default: \S+\.$", told[name]) for name in told)
    assert told["poll_seconds"] == (
        "With an interval as trigger the source folder is looked at every so many seconds. "
        "Default: 1.0."
    )
    parser().format_help()


def test_a_file_that_is_not_there_explains_nothing(tmp_path: Path) -> None:
    assert explained(tmp_path / "default.toml") == {}

"""The audit of dependencies: what it finds wrong, and what it does not claim to know."""

import json
from pathlib import Path

import pytest

from tests import dependencies
from tests.dependencies import Part, advised, main, not_as_pinned, other_licences

PINS = {"lz4": "4.4.5", "cramjam": "2.14.0"}


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ({"lz4": "4.4.5", "cramjam": "2.14.0"}, []),
        ({"lz4": "4.4.4", "cramjam": "2.14.0"}, ["lz4 4.4.4 is installed, 4.4.5 is pinned"]),
        ({"lz4": "4.4.5"}, ["cramjam is pinned and not installed"]),
        ({**PINS, "left-pad": "1"}, ["left-pad 1 is installed, nothing is pinned"]),
    ],
)
def test_each_difference_from_the_pins_is_told(parts: dict[str, str], wrong: list[str]) -> None:
    assert not_as_pinned([Part("PyPI", *p) for p in parts.items()], PINS) == wrong


def test_a_licence_that_is_not_allowed_is_told() -> None:
    told = {"a": "MIT OR Apache-2.0", "b": "GPL-3.0-only", "c": "none told", "d": "(MIT AND 0BSD)"}
    allowed = ["MIT", "Apache-2.0", "0BSD"]
    assert other_licences(told, allowed) == ["b: GPL-3.0-only", "c: none told"]


def test_an_advisory_is_found_by_name_and_version(tmp_path: Path) -> None:
    parts = [Part("PyPI", "typing-extensions", "4.16.0"), Part("Maven", "g:a", "1.2")]
    packages = [("PyPI", "Typing_Extensions", ["4.16.0"]), ("Maven", "g:a", ["1.1"]),
                ("Maven", "g:a", []), ("npm", "g:a", ["1.2"])]  # fmt: skip
    for number, (ecosystem, name, versions) in enumerate(packages):
        package = {"ecosystem": ecosystem, "name": name}
        advisory = {"id": f"X-{number}", "affected": [{"package": package, "versions": versions}]}
        (tmp_path / f"{number}.json").write_text(json.dumps(advisory))
    withdrawn = {"id": "W", "withdrawn": "2026-01-01", "affected": [
        {"package": {"ecosystem": "Maven", "name": "g:a"}, "versions": ["1.2"]}
    ]}  # fmt: skip
    (tmp_path / "w.json").write_text(json.dumps(withdrawn))
    assert advised(parts, tmp_path) == (["Typing_Extensions 4.16.0: X-0", "g:a 1.2: X-2"], 4)


@pytest.mark.slow
def test_this_environment_is_in_order_and_what_was_not_asked_is_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status = main([])
    said = capsys.readouterr().out
    assert status == 0, said
    assert "UNKNOWN known vulnerabilities" in said
    assert main(["--strict"]) == 3
    assert main(["--strict", "--advisories", str(tmp_path)]) == 3
    assert "against 0 advisories" in capsys.readouterr().out


def test_jars_are_known_by_what_they_say_inside() -> None:
    found = set(dependencies.jars())
    assert any(p.name == "io.netty:netty-common" for p in found)

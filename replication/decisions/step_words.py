"""A step of a plan in words: its command, its check, and how to take it back."""

from collections.abc import Iterator
from typing import Any


def step_words(step: dict[str, Any]) -> Iterator[str]:
    """A step's command, its check and how to take it back."""
    if step["command"] is None:
        yield f"       No command: {step['note']}."
        return
    yield from _command_words(step)


def _command_words(step: dict[str, Any]) -> Iterator[str]:
    at = f"   (on the machine of broker {step['broker']})" if step["at_broker"] else ""
    yield f"       {step['command']}{at}"
    if step["note"]:
        yield f"       ({step['note']})"
    yield f"       check: {step['check']}"
    yield f"              prints: {step['prints']}{_until(step)}"
    if step["undo"] is not None:
        yield f"       undo:  {step['undo']}"
    else:
        yield f"       IRREVERSIBLE: copy first: {step['copy_first']}"
    yield f"       tried: {', '.join(step['tried']) or 'no'}"


def _until(step: dict[str, Any]) -> str:
    """How long what a check prints may be something else."""
    seconds = step["within"]
    return f"; ask again until it does, for up to {seconds} s" if seconds else ""

"""The server: lists the tools, checks what a call gives, runs the command, marks what it answers.

It speaks over stdin and stdout by the protocol's own library, asks no model anything, opens no port
and writes no file. Specification: https://modelcontextprotocol.io
"""

import argparse
import asyncio
import importlib
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from replication import VERSION
from replication.agents.allowed_paths import NotAllowed
from replication.agents.calls import NotPossible, call
from replication.agents.tools import TOOLS, UNTRUSTED, Tool
from replication.paths import how_to_install

UNUSABLE = 2
ANSWERED = (0, 1, 3)
AT_ONCE = 2
INSTRUCTIONS = (
    "Answers questions about what is left of a Kafka incident: files below one folder, the root. "
    "Paths are relative to it; `.` is all of it. Begin with `diagnose`. Nothing is changed and no "
    f"broker is asked. {UNTRUSTED}"
)


@dataclass(frozen=True, slots=True)
class _Library:
    """Modules of the extra `mcp`."""

    lowlevel: Any
    stdio: Any
    types: Any
    jsonschema: Any


def arguments(command: argparse.ArgumentParser) -> None:
    """What `mcp` takes."""
    command.add_argument(
        "--root",
        required=True,
        type=Path,
        metavar="DIR",
        help="the folder below which clients may name evidence; links out of it are refused",
    )


def run(options: argparse.Namespace) -> int:
    """Serves until stdin ends. Exit status: 0, or 2 where it cannot begin."""
    try:
        root = options.root.resolve(strict=True)
    except OSError as error:
        return _cannot(
            f"--root {options.root}: {error.strerror}: name the folder with the evidence"
        )
    if not root.is_dir():
        return _cannot(f"--root {options.root}: a file: name the folder that it is in")
    try:
        names = ("mcp.server.lowlevel", "mcp.server.stdio", "mcp_types", "jsonschema")
        library = _Library(*map(importlib.import_module, names))
    except ImportError as error:
        told = f"it needs the extra `mcp`: {how_to_install('mcp')}"
        return _cannot(f"{error.name or 'mcp'} is not installed; {told}")
    asyncio.run(_serve(library, root))
    return 0


def _cannot(why: str) -> int:
    print(f"replication-analyzer mcp: {why}", file=sys.stderr)
    return UNUSABLE


async def _serve(library: _Library, root: Path) -> None:
    types, turn = library.types, asyncio.Semaphore(AT_ONCE)

    async def list_tools(context: Any, params: Any) -> Any:
        return types.ListToolsResult(tools=[_told(types, tool) for tool in TOOLS.values()])

    async def call_tool(context: Any, params: Any) -> Any:
        async with turn:
            return await _answer(library, root, params.name, params.arguments or {})

    server = library.lowlevel.Server(
        "replication-analyzer",
        version=VERSION,
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )
    async with library.stdio.stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


def _told(types: Any, tool: Tool) -> Any:
    return types.Tool(
        name=tool.name,
        description=f"{tool.does} {UNTRUSTED}",
        input_schema=tool.input_schema(),
        output_schema=tool.output_schema(),
        annotations=types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )


async def _answer(library: _Library, root: Path, name: str, given: dict[str, Any]) -> Any:
    """The result of a call: what was wrong with it is told as such, so that it is asked better."""
    tool = TOOLS.get(name)
    if tool is None:
        return _refused(library, f"no tool {name}; there are {', '.join(TOOLS)}")
    checked = library.jsonschema.Draft202012Validator(tool.input_schema())
    for error in checked.iter_errors(given):
        where = "/".join(map(str, error.path))
        return _refused(library, f"{name}: {where}: {error.message}" if where else error.message)
    try:
        called = await call(tool.words(root, given), root)
    except (NotAllowed, NotPossible) as error:
        return _refused(library, f"{name}: {error}")
    if called.status not in ANSWERED:
        return _refused(library, called.error.strip() or f"{name} ended with {called.status}")
    answer = {"text": called.out} if tool.schema is None else json.loads(called.out)
    return library.types.CallToolResult(
        content=[_text(library, UNTRUSTED), _text(library, called.out)],
        structured_content={
            "untrusted": UNTRUSTED,
            "status": called.status,
            # Without how far it was, which the command says where it takes long.
            "notes": [n for n in called.error.splitlines() if not n.startswith("... ")],
            "answer": answer,
        },
    )


def _refused(library: _Library, why: str) -> Any:
    """why may quote evidence, too: names of files above all."""
    texts = [_text(library, UNTRUSTED), _text(library, why)]
    return library.types.CallToolResult(content=texts, is_error=True)


def _text(library: _Library, text: str) -> Any:
    return library.types.TextContent(type="text", text=text)

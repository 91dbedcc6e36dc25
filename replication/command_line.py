"""The arguments of `replication-analyzer`: every option with its help, in any order."""

import argparse
import re
import sys
from collections.abc import Sequence
from datetime import timedelta, timezone, tzinfo
from itertools import pairwise
from pathlib import Path
from typing import Any, NoReturn
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from replication import VERSION
from replication.evidence.clients.client_logs import AckFields
from replication.evidence.collecting.collection import Told
from replication.nearest import did_you_mean
from replication.protocol.ground.wire import INCIDENT, INCIDENT_RULE

NAME = "replication-analyzer"
INCIDENT_HELP = (
    "what to call this incident: several of one cluster are then kept apart. Events that "
    f"name another one are not taken ({INCIDENT_RULE})"
)


class Parser(argparse.ArgumentParser):
    """Says in its first line what is wrong with a call, and where the help is. An option that it
    does not know comes first: what then seems to be missing is that one, misspelt. None is known by
    its beginning alone, which would mean another one as soon as there are two."""

    def __init__(self, **given: Any) -> None:
        super().__init__(allow_abbrev=False, **given)

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """As its parent; ends the process with status 2 at an option that is none."""
        words = list(sys.argv[1:] if args is None else args)
        own = words[: words.index("--") if "--" in words else None]
        if self._subparsers is None and not {"-h", "--help"} & {*own}:
            flags = self._option_string_actions
            for before, word in pairwise(["", *own]):
                name = word.partition("=")[0]
                if name.startswith("--") and name not in flags:
                    if before in flags and flags[before].nargs is None:
                        self.error(f"a value for {before} is missing")
                    self.error(f"unrecognized arguments: {name}{did_you_mean(name, flags)}")
        return super().parse_known_args(words, namespace)

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """Names what is near a word that is none of the choices, not all of them first."""
        if action.choices is not None and value not in action.choices:
            known = [str(choice) for choice in action.choices]
            near = did_you_mean(str(value), known) or f": there are {', '.join(known)}"
            raise argparse.ArgumentError(action, f"no {value!r}{near}")

    def error(self, message: str) -> NoReturn:
        """Ends the process with status 2."""
        print(f"{self.prog}: {message} ({self.prog} --help)", file=sys.stderr)
        sys.exit(2)


def parser() -> tuple[argparse.ArgumentParser, Any]:
    """The parser without its commands, and what they are added to."""
    result = Parser(
        prog=NAME,
        description="Which records each Kafka replica holds, which acknowledged records are gone, "
        "where replicas differ, why, and what can be recovered.",
        epilog="Exit status of diagnose: 0 nothing violated, 1 something is, 3 not decided, "
        "2 unusable call or input, 4 a defect of the tool. Shell completion: "
        f"source <({NAME} completion)",
    )
    result.add_argument("--version", action="version", version=f"{NAME} {VERSION}")
    return result, result.add_subparsers(dest="command", required=True, metavar="COMMAND")


def parse(whole: argparse.ArgumentParser, argv: Sequence[str] | None) -> argparse.Namespace:
    """The arguments, PATHs before, between and behind options."""
    arguments, rest = whole.parse_known_args(argv)
    more = [text for text in rest if not text.startswith("-")]
    if len(more) < len(rest) or (more and not hasattr(arguments, "paths")):
        unknown = [t for t in rest if t.startswith("-") or not hasattr(arguments, "paths")]
        flags = _options(_commands(whole)[arguments.command]).split()
        near = did_you_mean(unknown[0].partition("=")[0], flags)
        whole.error(f"unrecognized arguments: {' '.join(unknown)}{near}")
    if more:
        arguments.paths = [*arguments.paths, *(Path(text) for text in more)]
    return arguments


def evidence_arguments(command: argparse.ArgumentParser) -> None:
    """What every command takes that reads evidence."""
    command.add_argument(
        "paths",
        nargs="*",
        type=Path,
        metavar="PATH",
        help="a folder, file or archive (tar, zip, packed in any way) with evidence of any kind; "
        "- is standard input",
    )
    judged_arguments(command)


def judged_arguments(command: argparse.ArgumentParser) -> None:
    """How evidence is read and judged, wherever it comes from."""
    scope_arguments(command)
    command.add_argument(
        "--processes",
        type=_at_least_one,
        metavar="N",
        help="how many processes read files at once; by default up to 4",
    )


def scope_arguments(command: argparse.ArgumentParser) -> None:
    """What of the evidence is judged, and by which release; and what its files do not say."""
    command.add_argument(
        "--kafka",
        metavar="VERSION",
        help="judge by this release, whatever the evidence says",
    )
    command.add_argument(
        "--topic",
        dest="topics",
        type=topic_names,
        default=frozenset(),
        metavar="NAME,..",
        help="only these topics",
    )
    told_arguments(command)
    command.add_argument("--incident", metavar="NAME", type=incident_name, help=INCIDENT_HELP)


def told_arguments(command: argparse.ArgumentParser) -> None:
    """What the user may say of evidence where its files do not."""
    command.add_argument(
        "--broker",
        nargs=2,
        action="append",
        metavar=("N", "PATH"),
        help="this file or folder is of broker N; may be given several times",
    )
    command.add_argument(
        "--time-zone",
        metavar="ZONE",
        help="the time zone in which the brokers' logs print the time: Europe/Vienna or +05:30; "
        "without this flag it is found from the rest of the evidence, else UTC is taken",
    )
    command.add_argument(
        "--ack-fields",
        metavar="OURS=THEIRS,..",
        help="how an acknowledgement log (JSON, CSV) names its fields; NAME=:VALUE where one value "
        "holds for every line (ts=timestamp,payload_id=key,status=:acked); `none`: no file is an "
        "acknowledgement log, though it may look like one",
    )
    command.add_argument(
        "--all-producers",
        action="store_true",
        help="the acknowledgement logs cover every producer: a record that they do not name was "
        "never acknowledged",
    )
    command.add_argument(
        "--clock-bound",
        metavar="MS",
        type=_milliseconds,
        help="the clocks of brokers, controllers and clients differ by at most MS (including an "
        "answer's way to its client, where the client's log has no sent_ts). Only needed where "
        "an acknowledgement log has offsets but no keys",
    )
    command.add_argument(
        "--payload-id-in",
        metavar="PLACE",
        type=_place_of_ids,
        help="where the records have the payload ids of clients' logs: key, value or header:NAME; "
        "without this flag it is found out from the records",
    )


def told_of(arguments: argparse.Namespace) -> Told:
    """What the user says where the files do not. Raises ValueError, which names the flag."""
    brokers: dict[Path, int] = {}
    for number, path in arguments.broker or ():
        if not number.isdecimal():
            raise ValueError(f"--broker {number}: expected a broker id and a file or folder")
        brokers[Path(path)] = int(number)
    zone = time_zone(arguments.time_zone)
    names = ack_fields(arguments.ack_fields)
    return Told(names, brokers, zone, arguments.all_producers, arguments.clock_bound)


def ack_fields(text: str | None) -> AckFields | None:
    """What --ack-fields says. Raises ValueError."""
    try:
        return None if text == "none" else AckFields.of(text or "")
    except ValueError as error:
        raise ValueError(f"--ack-fields: {error}") from None


def time_zone(text: str | None) -> tzinfo | None:
    """`Europe/Vienna`, `+05:30` or `UTC`."""
    if text is None:
        return None
    offset = re.fullmatch(r"(?:UTC|GMT)?([+-])(\d{1,2}):?(\d\d)?", text)
    try:
        if offset:
            ahead = timedelta(hours=int(offset[2]), minutes=int(offset[3] or 0))
            return timezone(ahead if offset[1] == "+" else -ahead)
        return ZoneInfo(text)
    except (ValueError, ZoneInfoNotFoundError, OSError):
        raise ValueError(
            f"--time-zone {text}: expected a name (Europe/Vienna) or an offset (+05:30)"
        ) from None


def _at_least_one(text: str) -> int:
    if not text.isdecimal() or len(text) > 9 or int(text) == 0:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number from 1 on")
    return int(text)


def _milliseconds(text: str) -> int:
    if not text.isdecimal() or len(text) > 12:
        raise argparse.ArgumentTypeError(f"{text}: expected a whole number of milliseconds")
    return int(text)


def _place_of_ids(text: str) -> str:
    if text in ("key", "value") or (text.startswith("header:") and len(text) > len("header:")):
        return text
    raise argparse.ArgumentTypeError(f"{text!r} is not key, value or header:NAME")


def topic_names(text: str) -> frozenset[str]:
    """For argparse: names of topics, which have no comma in them."""
    return frozenset(filter(None, (name.strip() for name in text.split(","))))


def incident_name(text: str) -> str:
    """For argparse: what people call an incident."""
    if INCIDENT.fullmatch(text):
        return text
    raise argparse.ArgumentTypeError(f"{text!r}: {INCIDENT_RULE}")


def answer_arguments(command: argparse.ArgumentParser) -> None:
    """What `diagnose` takes besides."""
    command.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="a short answer for people (the default), or the whole for scripts",
    )
    command.add_argument(
        "--report", metavar="FILE.html", type=Path, help="also write one offline page"
    )
    command.add_argument(
        "--strict",
        action="store_true",
        help="take nothing for granted: what rests on an assumption is UNKNOWN then; "
        "exit 3 on any UNKNOWN",
    )


def import_arguments(command: argparse.ArgumentParser) -> None:
    """What `import` takes besides."""
    command.add_argument(
        "--out",
        required=True,
        type=Path,
        metavar="EVENTS",
        help="JSON Lines, gzipped by .gz, Parquet by .parquet",
    )
    command.add_argument(
        "--generation",
        type=int,
        default=0,
        metavar="N",
        help="higher wins when the same partitions are imported again",
    )


def show_arguments(command: argparse.ArgumentParser) -> None:
    """What `show` takes besides."""
    command.add_argument(
        "--topic-partition", required=True, metavar="t-0", help="topic and number of the partition"
    )
    command.add_argument(
        "--at",
        type=int,
        metavar="SEQUENCE",
        help="after the event of this sequence number (0 is the first); at the end without",
    )


def completion(whole: argparse.ArgumentParser) -> str:
    """A script for bash (and zsh by bashcompinit) that completes commands, options and files."""
    commands = _commands(whole)
    cases = "\n".join(
        f"    {name}) words={_quoted(_options(command))};;" for name, command in commands.items()
    )
    return f"""\
[ -n "$ZSH_VERSION" ] && autoload -U +X bashcompinit && bashcompinit
_replication_analyzer() {{
  local words current="${{COMP_WORDS[COMP_CWORD]}}"
  if [ "$COMP_CWORD" -eq 1 ]; then
    COMPREPLY=($(compgen -W {_quoted(" ".join(commands) + " --help --version")} -- "$current"))
    return
  fi
  case "${{COMP_WORDS[1]}}" in
{cases}
  esac
  if [ "${{current#-}}" != "$current" ]; then
    COMPREPLY=($(compgen -W "$words" -- "$current"))
  else
    COMPREPLY=($(compgen -f -- "$current"))
  fi
}}
complete -o filenames -F _replication_analyzer {NAME}"""


def _commands(whole: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    commands: dict[str, argparse.ArgumentParser] = {}
    for action in whole._subparsers._group_actions if whole._subparsers else ():
        commands.update(action.choices or {})
    return commands


def _options(command: argparse.ArgumentParser) -> str:
    return " ".join(option for a in command._actions for option in a.option_strings)


def _quoted(text: str) -> str:
    return f"'{text}'"

"""The plan as a shell script, which asks before each step and stops where a check fails.

It is written only; nothing of it is run here.
"""

import re
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from replication.decisions.commands import CONTROLLERS

# What Kafka allows a topic to be called: nothing that a shell could read as anything else.
TOPIC = re.compile(r"[a-zA-Z0-9._-]{1,249}")

HEAD = r"""#!/usr/bin/env bash
# The plan of `replication-analyzer decide`: {what}
# Nothing of it was run. It asks before each step and stops where a check does not print what it
# must; called again it goes on behind the last step that passed (STATE has their numbers).
#
# Set before: B a bootstrap server{zookeeper}, SAFE a folder elsewhere,
# LOG_DIR the log directory that the partition lies in (LOG_DIR_2 for broker 2, where they differ),
# CONFIG the brokers' properties (CONFIG_2 ..). AT_2='ssh kafka2' runs commands on the machine of
# broker 2; without it they are shown for you to run there. YES=1 asks nothing. WAIT: how many
# seconds to ask each check again, in place of what the plan says.{controller}
set -u
: "${{B:?a bootstrap server}}"{need_zookeeper}
: "${{SAFE:?a folder elsewhere}}"
LOG_DIR=${{LOG_DIR:-LOG_DIR}} CONFIG=${{CONFIG:-CONFIG}} Z=${{Z:-Z}}
FILE=${{FILE:-$SAFE/partitions.json}}
STATE=${{STATE:-$0.state}}
mkdir -p "$SAFE" && touch "$STATE" || exit 2
"""

FUNCTIONS = r"""
fill() {  # BROKER TEXT: the names of this cluster in the place of those of the plan
  local directory=LOG_DIR_$1 config=CONFIG_$1 text=$2
  text=${text//--bootstrap-server B/--bootstrap-server $B}
  text=${text//--bootstrap-controller C/--bootstrap-controller ${C:-C}}
  text=${text//-daemon CONTROLLER_CONFIG/-daemon ${CONTROLLER_CONFIG:-CONTROLLER_CONFIG}}
  text=${text//--zookeeper Z/--zookeeper $Z}
  text=${text//zookeeper-shell.sh Z/zookeeper-shell.sh $Z}
  text=${text//LOG_DIR\//${!directory:-$LOG_DIR}/}
  text=${text//SAFE\//$SAFE/}
  text=${text//-daemon CONFIG/-daemon ${!config:-$CONFIG}}
  text=${text// FILE/ $FILE}
  printf '%s' "$text"
}

ask() {  # QUESTION: y goes on, s skips the step, anything else stops
  answer=y
  [ -n "${YES:-}" ] && return 0
  read -r -p "$1 [y: yes, s: skip this step, else: stop] " answer < /dev/tty || answer=n
  [ "$answer" = y ]
}

at() {  # BROKER WHERE COMMAND: runs it here, or on the broker's machine
  local how=AT_$1 who="broker $1"
  [ "$1" = controller ] && who="a controller"
  if [ "$2" = here ]; then bash -c "$3"
  elif [ -n "${!how:-}" ]; then ${!how} "$3"
  else
    echo "   on the machine of $who: $3"
    return 99
  fi
}

passes() {  # TEXT SHOWS HIDES: whether a line of it matches SHOWS, and none HIDES
  printf '%s\n' "$1" | grep -E -q -- "$2" || return 1
  [ -z "$3" ] || ! printf '%s\n' "$1" | grep -E -q -- "$3"
}

# NUMBER BROKER WHERE WORDS COMMAND CHECK SHOWS HIDES PRINTS BACK CHECKED-WHERE WITHIN
step() {
  local number=$1 broker=$2 where=$3 words=$4 command check printed status end
  grep -q -x -- "$number" "$STATE" && { echo "$number. $words  (done before)"; return; }
  command=$(fill "$broker" "$5")
  check=$(fill "$broker" "$6")
  echo; echo "$number. $words"; echo "   $command"; echo "   ${10}"
  if ! ask "   Run it?"; then
    [ "$answer" = s ] && { echo "$number" >> "$STATE"; return; }
    echo "Stopped before step $number."; exit 1
  fi
  at "$broker" "$where" "$command"; status=$?
  if [ $status -eq 99 ] && ! ask "   Done?"; then echo "Stopped at step $number."; exit 1; fi
  if [ $status -ne 0 ] && [ $status -ne 99 ]; then
    echo "Stopped: step $number ended with status $status. Nothing after it was run."; exit 1
  fi
  echo "   check: $check"; echo "   prints: $9"
  end=$((SECONDS + ${WAIT:-${12}}))
  while true; do
    printed=$(at "$broker" "${11}" "$check" 2>&1); status=$?
    if [ $status -eq 99 ]; then
      echo "$printed"
      ask "   Did it print that?" && { echo "$number" >> "$STATE"; return; }
      break
    fi
    if passes "$printed" "$7" "$8"; then
      echo "$number" >> "$STATE"; return
    fi
    [ $SECONDS -lt $end ] || break
    sleep 2
  done
  printf '%s\n' "$printed"
  echo "Stopped: the check of step $number does not print: $9. Go on only when it does."
  exit 1
}
"""


CONTROLLER = """
# C: a controller, host:port. CONTROLLER_CONFIG: its properties. AT_controller='ssh kafka9': how to
# reach its machine. Where several are down, start the others yourself."""
# What a check names that can be asked from any machine.
ASK_FROM_HERE = ("bootstrap-server", "bootstrap-controller", "zookeeper")


class NoScript(ValueError):
    """The plan cannot be a script; the text says why."""


def script(row: dict[str, Any], first: Sequence[str] = ()) -> str:
    """The steps of one partition of the answer (`partitions` of the JSON), as a script for bash.
    first: what has to be done before any step, which the script asks for.

    Raises NoScript where there are no steps, where one of them has no command, or where the
    topic's name is none that Kafka allows.
    """
    name = f"{row['topic']}-{row['partition']}"
    if not TOPIC.fullmatch(row["topic"]):
        raise NoScript("the topic has a name that Kafka does not allow: no command is made of it")
    if not row["steps"]:
        raise NoScript(f"{name}: there are no steps to carry out")
    lacking = next((s for s in row["steps"] if s["command"] is None), None)
    if lacking is not None:
        raise NoScript(f"{name}: no command does step {lacking['number']}: {lacking['note']}")
    return "".join(_parts(row, name, first))


def _is_of_controllers(step: dict[str, Any]) -> bool:
    return bool(step["action"] == CONTROLLERS)


def _parts(row: dict[str, Any], name: str, first: Sequence[str]) -> Iterator[str]:
    asks_zookeeper = any("zookeeper" in f"{s['command']} {s['check']}" for s in row["steps"])
    chosen = "keeps every choice open" if row["replica"] is None else f"broker {row['replica']}"
    yield HEAD.format(
        what=f"{name}, {chosen}",
        zookeeper=", Z a ZooKeeper connection string" if asks_zookeeper else "",
        controller=CONTROLLER if any(map(_is_of_controllers, row["steps"])) else "",
        need_zookeeper='\n: "${Z:?a ZooKeeper connection string}"' if asks_zookeeper else "",
    )
    yield FUNCTIONS
    for each in first:
        yield f"\necho {shlex.quote(each)}\nask '   Done?' || exit 1\n"
    for step in row["steps"]:
        back = (
            f"undo: {step['undo']}"
            if step["undo"] is not None
            else f"IRREVERSIBLE: copy first: {step['copy_first']}"
        )
        check = step["command"] if step["check"] == "the same command" else step["check"]
        words = [
            str(step["number"]),
            "controller" if _is_of_controllers(step) else str(step["broker"] or 0),
            "there" if step["at_broker"] or _is_of_controllers(step) else "here",
            step["words"],
            step["command"],
            check,
            step["shows"],
            step["hides"] or "",
            step["prints"],
            back,
            "here" if any(each in check for each in ASK_FROM_HERE) else "there",
            str(step["within"]),
        ]
        yield f"\nstep {' '.join(shlex.quote(word) for word in words)}\n"
    yield f'\necho; echo "{name}: each step passed."\n'

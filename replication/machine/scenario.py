"""Runs scenario files: text commands against the machine, and the output they are held against.

Mistakes in a file are ScenarioError, with line and column; what cannot happen in the partition's
state is output (`cannot: ...`), and so is everything else a command brings about. A stanza prints
what its commands have to say, then the picture of all logs, or the verdicts where it ends in
`check`. `rewind` tells the story again from `mark` (or the start) under another version; `replay`
tells all of it again, and prints where it ends.
"""

import re
from collections.abc import Sequence

from replication.machine.machine_state import Broker, Impossible, World
from replication.machine.partition_machine import Given, PartitionMachine
from replication.machine.producer_state import Batch
from replication.machine.scenario_check import INVARIANT_NAMES, check
from replication.machine.scenario_text import (
    Command,
    ScenarioError,
    Stanza,
    Word,
    parse,
    render,
)
from replication.protocol.ground.picture import PictureError, Row, draw, read_row
from replication.protocol.ground.versions import Behaviour, behaviour, controllers_of, with_remedy

CRASHES = {
    "clean": "clean",
    "process": "process_crash",
    "power": "power_loss",
    "disk": "disk_loss",
}
RESPONSES = ("ok", "lost", "delayed")


def picture(world: World) -> list[str]:
    """The logs of all replicas as they are now."""
    rows = [
        Row(
            world.name(b.replica),
            tuple(b.log.spans),
            b.high_watermark if b.running else b.checkpointed_high_watermark,
            b.leader_epoch,
            b.log.log_start_offset,
            b.log.log_end_offset,
            b.role == "leader",
            not b.running,
        )
        for b in world.brokers.values()
    ]
    return draw(rows, lambda content: world.contents[content])


class Story:
    """One telling of a scenario under one version: its machine, and the commands so far."""

    def __init__(self, given: Command, version: Word | None, override: Command | None) -> None:
        """override: the rewind or replay whose version replaces the given one."""
        self.given = given
        self.told: list[Command] = []
        self.marked = 0
        self.numbers: dict[str, int] = {}
        self.default = self._behaviour(given, version, override)
        self.machine = self._build()

    @property
    def world(self) -> World:
        return self.machine.world

    def _behaviour(
        self, given: Command, version: Word | None, override: Command | None
    ) -> Behaviour:
        source = override or given
        if override is None and version is not None:
            given.settings["kafka"] = version
        controller = given.text("controller")
        if override is not None and controller is not None:
            kept = self._release(source, None)
            modes = controllers_of(kept.kafka_version)
            controller = controller if controller in modes else None
        return self._release(source, controller)

    def _release(self, command: Command, controller: str | None) -> Behaviour:
        """The behaviour that a command's kafka=, inter_broker=, elr= and with= name."""
        kafka = command.settings.get("kafka")
        if kafka is None:
            raise command.error(f"{command.name} needs kafka=VERSION")
        at = kafka
        try:
            found = behaviour(
                kafka.text,
                command.text("inter_broker"),
                controller=controller,
                eligible_leader_replicas=command.switch("elr"),
            )
            remedy = command.settings.get("with")
            if remedy is not None:
                at = remedy
                found = with_remedy(found, remedy.text)
        except ValueError as error:
            raise command.error(str(error), at) from error
        return found

    def upgraded(self, command: Command) -> None:
        """A broker, or the controller, gets what the command names.

        What a broker speaks is the cluster's inter-broker version unless said; the controller keeps
        whether replicas are eligible.
        """
        world, name = self.world, command.arguments[0].text
        controller = name == "controller" and name not in self.numbers
        now = world.behaviour
        if not controller and "elr" in command.settings:
            word = command.settings["elr"]
            raise command.error("elr is the controller's: upgrade controller", word)
        if "inter_broker" not in command.settings and now.inter_broker_version is not None:
            command.settings["inter_broker"] = Word(now.inter_broker_version, 1)
        found = self._release(command, now.controller)
        if controller:
            self.machine.upgrade_controller(found)
        else:
            self.machine.upgrade(self.replica(command.arguments[0], command), found)

    def _build(self) -> PartitionMachine:
        given = self.given
        contents: list[str] = []
        rows: list[Row] = []
        if not given.lines:
            raise given.error("expected the lines of a picture after given")
        for number, line in given.lines:
            try:
                row = read_row(line, contents)
            except PictureError as error:
                raise ScenarioError(number, error.column, str(error)) from error
            if row.name in [r.name for r in rows]:
                raise ScenarioError(number, 1, f"replica {row.name} is drawn twice")
            rows.append(row)
        self.numbers = _numbers([r.name for r in rows])
        try:
            machine = PartitionMachine(
                self.default,
                [self._given_row(row) for row in rows],
                self.replicas("isr", given) or [],
                min_insync_replicas=given.number("min_insync_replicas") or 1,
                unclean_leader_election=given.switch("unclean"),
                names={number: name for name, number in self.numbers.items()},
                contents=contents,
                behaviours=self._versions(),
                assigned_replicas=self.replicas("assigned", given),
                cleanup_policy=self._word("cleanup", given, ("delete", "compact")),
            )
        except Impossible as error:
            raise given.error(str(error)) from error
        machine.world.isr_changes_wait = given.text("isr_changes") == "wait"
        return machine

    def _versions(self) -> dict[int, Behaviour]:
        """The brokers that run another version than the rest: versions=A:2.7.1,B:2.8.0."""
        given, word = self.given, self.given.settings.get("versions")
        result: dict[int, Behaviour] = {}
        if word is None:
            return result
        for item in word.text.split(","):
            name, _, version = item.partition(":")
            try:
                result[self.replica(Word(name, word.column), given)] = behaviour(
                    version, self.default.inter_broker_version, controller=self.default.controller
                )
            except ValueError as error:
                if isinstance(error, ScenarioError):
                    raise
                message = f"expected BROKER:VERSION,...: {error}"
                raise given.error(message, word) from error
        return result

    def _given_row(self, row: Row) -> Given:
        return Given(
            self.numbers[row.name],
            row.spans,
            row.log_end_offset if row.high_watermark is None else row.high_watermark,
            row.leader_epoch or 0,
            row.log_start_offset,
            row.leads,
            row.stopped,
        )

    def replica(self, word: Word, command: Command) -> int:
        """The number of a replica by its name."""
        number = self.numbers.get(word.text)
        if number is None:
            known = ", ".join(self.numbers)
            raise command.error(f"unknown replica {word.text!r}, expected one of {known}", word)
        return number

    def replicas(self, key: str, command: Command) -> list[int] | None:
        """A setting as a list of replicas; None where it is absent."""
        word = command.settings.get(key)
        if word is None:
            return None
        names = [n for n in word.text.split(",") if n and n != "none"]
        return [self.replica(Word(n, word.column), command) for n in names]

    def _word(self, key: str, command: Command, allowed: Sequence[str]) -> str:
        """A setting that is one of few words; the first of them where it is absent."""
        word = command.text(key) or allowed[0]
        if word not in allowed:
            raise command.error(f"{key} must be one of {', '.join(allowed)}", command.settings[key])
        return word

    def tell(self, command: Command) -> list[str]:
        """Does one command; what it has to say. What cannot happen is said, not raised."""
        world = self.world
        world.command, world.notes = str(command), []
        printed: list[str] = []
        try:
            printed = self._do(command)
        except Impossible as error:
            world.note(f"cannot: {error}")
        self.told.append(command)
        return world.notes + printed

    def _do(self, command: Command) -> list[str]:
        machine, name = self.machine, command.name
        if name == "check":
            word = command.arguments[0] if command.arguments else None
            if word is not None and word.text not in (*INVARIANT_NAMES, "all"):
                raise command.error(f"unknown invariant {word.text!r}", word)
            return check(self.world, word.text if word else None)
        if name == "controller":
            return [registration(self.world)]
        if name == "caches":
            return caches(self.world)
        if name in ("tick", "delete_records", "isr", "elect", "rebalance", "reassign"):
            self._partition_command(command)
            return []
        if name in ("recreate", "depose"):
            getattr(machine, name)()
            return []
        if name == "upgrade":
            self.upgraded(command)
            return []
        broker = self.replica(command.arguments[0], command)
        if name in ("produce", "end"):
            self._producer_command(command, broker)
        elif name in ("consume", "fetch", "compact"):
            self._data_command(command, broker)
        elif name in ("stop", "crash", "restart", "start"):
            self._process_command(command, broker)
        elif name == "deliver":
            machine.deliver([broker], command.number("late") or 0)
        elif name == "propose":
            isr = self.replicas("isr", command)
            if not isr:
                raise command.error("expected isr=A,B")
            machine.ask_for_isr(
                broker,
                isr,
                leader_epoch=command.number("epoch"),
                partition_epoch=command.number("partition_epoch"),
                recovering=bool(command.switch("recovering")),
            )
        elif name == "checkpoint":
            machine.write_high_watermark_checkpoint(broker)
        elif name == "isolate":
            machine.isolate(broker)
        elif name == "rejoin":
            machine.isolate(broker, False)
        else:
            getattr(machine, name)(broker)
        return []

    def _producer_command(self, command: Command, broker: int) -> None:
        machine, word = self.machine, command.arguments[1]
        if command.name == "end":
            outcome = command.text("outcome")
            if outcome not in ("commit", "abort"):
                raise command.error("outcome must be commit or abort", word)
            batch = Batch("", transaction=word.text, marker=outcome)
            machine.write_marker(f"{outcome}_{word.text}", batch, to=broker)
            return
        match = re.fullmatch(r"([A-Za-z_]\w*)(?:\*([1-9]\d*))?", word.text, re.ASCII)
        if not match:
            raise command.error(f"expected RECORD or RECORD*COUNT, found {word.text!r}", word)
        acks, producer = command.text("acks"), command.text("producer")
        if acks is not None and not re.fullmatch(r"\d+|all", acks, re.ASCII):
            raise command.error(
                f"acks must be a number or all, found {acks!r}", command.settings["acks"]
            )
        count = int(match[2] or 1)
        if producer is None:
            machine.produce(match[1], count, to=broker, acks=acks)
            return
        first = command.number("sequence") or 0
        batch = Batch(
            producer,
            command.number("producer_epoch") or 0,
            first,
            first + count - 1,
            command.text("transaction"),
        )
        machine.produce_in_order(match[1], batch, count, to=broker, acks=acks)

    def _data_command(self, command: Command, broker: int) -> None:
        machine = self.machine
        if command.name == "consume":
            isolation = self._word("isolation", command, ("read_uncommitted", "read_committed"))
            near = command.settings.get("near")
            machine.consume(
                broker,
                command.number("offset") or 0,
                read_committed=isolation == "read_committed",
                last_epoch=command.number("last_epoch"),
                near=None if near is None else self.replica(near, command),
            )
        elif command.name == "compact":
            machine.compact(broker, _offsets(command))
        elif self._word("request", command, ("at_once", "delayed")) == "delayed":
            machine.send_fetch(broker)
        else:
            response = self._word("response", command, RESPONSES)
            end = self.world.broker(broker).log.log_end_offset
            machine.fetch(
                broker,
                response=response,
                max_records=command.number("max"),
                at_once=bool(command.switch("at_once")),
            )
            if command.number("offset") not in (None, end):
                self.world.notes.insert(0, f"{self.world.name(broker)} fetches at offset {end}")

    def _process_command(self, command: Command, broker: int) -> None:
        machine, name = self.machine, command.name
        if name == "stop":
            deleted = self._word("directory", command, ("kept", "deleted")) == "deleted"
            machine.stop(broker, directory_deleted=deleted)
        if name in ("crash", "restart"):
            kind = command.text("kind") or ("clean" if name == "restart" else "process")
            if kind not in CRASHES:
                raise command.error(
                    f"kind must be one of {', '.join(CRASHES)}", command.settings["kind"]
                )
            machine.stop(
                broker,
                CRASHES[kind],
                surviving=command.number("to"),
                high_watermark_checkpoint=command.number("checkpoint"),
                epochs_lost=self._word("epochs", command, ("kept", "lost")) == "lost",
            )
        if name in ("restart", "start"):
            machine.start(broker, deliver=command.switch("deliver") is not False)

    def _partition_command(self, command: Command) -> None:
        machine, name = self.machine, command.name
        if name == "tick":
            machine.tick(command.number("ms") or 0)
        elif name == "delete_records":
            machine.delete_records(command.number("before"))
        elif name == "rebalance":
            percentage = command.number("percentage")
            machine.rebalance(10 if percentage is None else percentage)
        elif name == "reassign":
            machine.reassign(self.replicas("to", command) or (), self.replicas("deliver", command))
        elif name == "elect" and not command.arguments:
            machine.elect_by_rule(command.text("cause") or "offline")
        elif name == "elect":
            machine.elect(
                self.replica(command.arguments[0], command),
                leader_epoch=command.number("epoch"),
                isr=self.replicas("isr", command),
                deliver=self.replicas("deliver", command),
            )
        elif not command.arguments:
            machine.propose_isr(
                self.replicas("remove", command) or (), self.replicas("add", command) or ()
            )
        else:
            what = command.arguments[0]
            if what.text == "check":
                machine.check_lag()
            elif what.text in ("commit", "refuse"):
                error = command.text("error") or "INELIGIBLE_REPLICA"
                machine.decide_isr(error if what.text == "refuse" else None)
            else:
                raise command.error("expected check, commit or refuse", what)


def _offsets(command: Command) -> list[int]:
    """The offsets that a command lists, of which it needs one at least."""
    word = command.settings.get("offsets")
    if word is None or not re.fullmatch(r"\d+(,\d+)*", word.text, re.ASCII):
        found = "nothing" if word is None else repr(word.text)
        raise command.error(f"expected offsets=N,N, found {found}", word)
    return [int(n) for n in word.text.split(",")]


def _numbers(names: Sequence[str]) -> dict[str, int]:
    """Broker numbers: names that are numbers as they are, others by their order from 1."""
    if all(n.isdigit() for n in names):
        return {n: int(n) for n in names}
    return {n: i for i, n in enumerate(names, 1)}


def registration(world: World) -> str:
    """The controller's view in one line."""
    c = world.controller
    text = (
        f"leader {world.name(c.leader)} e{c.leader_epoch} isr "
        f"{','.join(world.name(r) for r in c.isr) or 'none'}"
    )
    if world.behaviour.eligible_leader_replicas:
        names = ",".join(world.name(r) for r in sorted(c.eligible)) or "none"
        text += f" elr {names}"
        if c.last_known_leader is not None:
            text += f" last known leader {world.name(c.last_known_leader)}"
    return text + (" recovering" if c.recovering else "")


def caches(world: World) -> list[str]:
    """Every replica's leader epoch cache, as epoch@start offset."""

    def entries(broker: Broker) -> str:
        return " ".join(f"{e.leader_epoch}@{e.start_offset}" for e in broker.epoch_entries)

    return [f"{world.name(b.replica)}: {entries(b) or 'none'}" for b in world.brokers.values()]


class Runner:
    """Runs a parsed file stanza by stanza."""

    def __init__(self, kafka: str | None = None) -> None:
        self.kafka = None if kafka is None else Word(kafka, 1)
        self.story: Story | None = None

    def run(self, stanza: Stanza) -> list[str]:
        """The output of one stanza."""
        output: list[str] = []
        last = stanza.commands[-1]
        for command in stanza.commands:
            output += self._one(command)
        story = self._story(last)
        if last.name in ("given", "mark"):
            return [*output, "ok"]
        if last.name in ("check", "controller", "caches", "replay"):
            return output
        return output + picture(story.world)

    def _story(self, command: Command) -> Story:
        if self.story is None:
            raise command.error("expected given before any other command")
        return self.story

    def _one(self, command: Command) -> list[str]:
        if command.name == "given":
            self.story = Story(command, self.kafka, None)
            return []
        story = self._story(command)
        if command.name == "mark":
            story.marked = len(story.told)
            return []
        if command.name == "rewind":
            self.story = self._again(story, command, story.told[: story.marked])[0]
            return []
        if command.name == "replay":
            again, said = self._again(story, command, story.told)
            ends_in_check = bool(story.told) and story.told[-1].name == "check"
            return said if ends_in_check else said + picture(again.world)
        return story.tell(command)

    def _again(
        self, story: Story, command: Command, told: list[Command]
    ) -> tuple[Story, list[str]]:
        """The same commands under the version that command names, and what they say.

        Of the verdicts on the way only the last are kept.
        """
        again = Story(story.given, None, command)
        said: list[str] = []
        for number, old in enumerate(told):
            lines = again.tell(old)
            if old.name in ("check", "controller", "caches") and number < len(told) - 1:
                continue
            said += lines
        again.marked = story.marked
        return again, said


def run_scenario(text: str, kafka: str | None = None) -> tuple[bool, str]:
    """Runs a scenario file's text; whether all output is as written, and the text as it came out.

    kafka: a version that replaces the one each `given` names. Raises ScenarioError.
    """
    parts = parse(text)
    runner = Runner(kafka)
    same = True
    for part in parts:
        if isinstance(part, Stanza):
            actual = runner.run(part)
            same = same and actual == part.expected
            part.expected = actual
    return same, render(parts)

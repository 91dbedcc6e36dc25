"""`replication-analyzer`: everything a laptop can do without Spark or Java."""

import argparse
import errno
import os
import sys
import time
import traceback
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from replication import command_line, doctor, progress, scenario_command
from replication.agents import server as agents
from replication.collect import command as collecting
from replication.decisions import command as decisions
from replication.decisions.answer import due
from replication.decisions.page_section import decisions_html
from replication.drill import command as drilling
from replication.drill.cluster import NoDrill
from replication.drill.plan import BadPlan
from replication.evidence.clients.told_once import told_once
from replication.evidence.collecting.collection import NoEvidence
from replication.evidence.collecting.many_processes import spread_over
from replication.evidence.collecting.observations import brokers_of
from replication.evidence.event_dumps import Misfits, read_events, write_events
from replication.evidence.importer import Import, import_evidence
from replication.evidence.joining.by_clock import ClocksDisagree
from replication.evidence.joining.told_removals import ToldRemovals
from replication.evidence.joining.without_records import count_records
from replication.evidence.opening import lines_of
from replication.evidence.unreadable import Unreadable
from replication.foresight import cluster as foresight_cluster
from replication.foresight import command as preflight
from replication.foresight import whatif_command
from replication.nearest import did_you_mean
from replication.protocol.ground.events import Event
from replication.protocol.ground.versions import behaviour, default_table, flag_table
from replication.protocol.judgement.bounded import FoldedPartition, Identity, fold_all, identity_of
from replication.recovery import command as recovery
from replication.recovery import produce_command, trace_command
from replication.recovery.folder import NotUsable, refuse_early
from replication.recovery.groups import command as groups_command
from replication.recovery.groups.hurt import who_was_hurt
from replication.recovery.page_section import records_html
from replication.reports import explained_words, words
from replication.reports.answer import assemble, exit_status, to_json, undecided_beside_the_table
from replication.reports.do_now import sends_to_decide
from replication.reports.evidence_lines import Quotes, read_lines
from replication.reports.finding_words import instead
from replication.reports.history_words import open_questions_of, two_histories_text
from replication.reports.inventory_words import counted, of_first_partitions
from replication.reports.line_words import sentence
from replication.reports.loss_words import name_clients
from replication.reports.page import NOTHING_BESIDE, Beside, write_page
from replication.reports.safe_text import plain, plain_output

UNUSABLE = 2
DEFECT = 4
INTERRUPTED = 130
# What events alone tell of why records were removed.
NO_REMOVALS = ToldRemovals()
# What a disk says that takes no more.
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)


class Unusable(ValueError):
    """The call or the input is unusable; the text says what, where and what to do."""


@dataclass(slots=True)
class Diagnosis:
    """Everything that one call read and concluded.

    events: all of them only where they were asked for; sources: those that findings name.
    """

    imported: Import
    events: list[Event]
    folded: list[FoldedPartition]
    answer: dict[str, Any]
    sources: dict[str, Event] = field(default_factory=dict)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs one command; the exit status is that of the outward contract."""
    with plain_output(), progress.lines_as_asked():
        return _run(command_line.parse(_parser(), argv))


def _run(arguments: argparse.Namespace) -> int:
    try:
        # A server waits for its client, which is no work that takes long.
        with nullcontext() if arguments.run is agents.run else progress.told():
            status: int = arguments.run(arguments)
        sys.stdout.flush()
        return status
    except (Unusable, NoEvidence, ClocksDisagree, foresight_cluster.Unusable) as error:
        print(f"replication-analyzer {arguments.command}: {error}", file=sys.stderr)
        return UNUSABLE
    except BrokenPipeError:
        # Whoever read the answer has had enough; Python would complain once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("replication-analyzer: interrupted", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            print(
                f"replication-analyzer {arguments.command}: {error.strerror}: what this call "
                "writes is not whole; make room there, or let it write elsewhere, and call again",
                file=sys.stderr,
            )
            return UNUSABLE
        traceback.print_exc()
        print(
            "replication-analyzer: this is a defect of the tool; please report the lines above",
            file=sys.stderr,
        )
        return DEFECT


def _parser() -> argparse.ArgumentParser:
    parser, commands = command_line.parser()
    diagnose = commands.add_parser("diagnose", help="evidence folders or event dumps to an answer")
    command_line.evidence_arguments(diagnose)
    command_line.answer_arguments(diagnose)
    diagnose.set_defaults(run=_diagnose)
    importing = commands.add_parser("import", help="evidence to an event dump")
    command_line.evidence_arguments(importing)
    command_line.import_arguments(importing)
    importing.set_defaults(run=_import)
    show = commands.add_parser("show", help="draw the replicas' logs at a moment")
    command_line.evidence_arguments(show)
    command_line.show_arguments(show)
    show.set_defaults(run=_show)
    explain = commands.add_parser(
        "explain", help="the proof of a finding; what a word of the answer or the tables means"
    )
    explain.add_argument(
        "finding_id",
        help="as `diagnose` names it; its beginning is enough. Or a word: a cause, an assumption, "
        "a table, a column, a word in one (unclean_election, disks_keep, contract, not_promised): "
        "what it means, without a PATH",
    )
    command_line.evidence_arguments(explain)
    explain.set_defaults(run=_explain)
    recover = commands.add_parser("recover", help="the lost records that a copy still holds")
    command_line.evidence_arguments(recover)
    recovery.arguments(recover)
    produce_command.arguments(recover)
    recover.set_defaults(run=_recover)
    trace = commands.add_parser("trace", help="what became of single records")
    command_line.evidence_arguments(trace)
    trace_command.arguments(trace)
    trace.set_defaults(run=_trace)
    groups = commands.add_parser("groups", help="which consumer groups a loss hurt, and how")
    command_line.evidence_arguments(groups)
    groups_command.arguments(groups)
    groups.set_defaults(run=_groups)
    decide = commands.add_parser("decide", help="which replica is to lead now, and in which steps")
    command_line.evidence_arguments(decide)
    decisions.arguments(decide)
    decide.set_defaults(run=_decide)
    collect = commands.add_parser(
        "collect", help="what to collect and how; with PATH: what is missing, and what that costs"
    )
    command_line.evidence_arguments(collect)
    collecting.arguments(collect)
    collect.set_defaults(run=_collect)
    whatif = commands.add_parser("whatif", help="what if a setting or a step had been otherwise")
    command_line.evidence_arguments(whatif)
    whatif_command.arguments(whatif)
    whatif.set_defaults(run=_whatif)
    _add_what_comes_before(commands)
    scenario = commands.add_parser(
        "scenario", help="run scenario files", description=scenario_command.DESCRIPTION
    )
    scenario_command.add_arguments(scenario)
    scenario.set_defaults(run=scenario_command.run)
    versions = commands.add_parser("versions", help="the flag table by Kafka version")
    versions.add_argument("kafka", nargs="?", metavar="VERSION", help="only this version's rules")
    versions.set_defaults(run=_versions)
    mcp = commands.add_parser("mcp", help="answer an assistant's questions (MCP, stdio, read-only)")
    agents.arguments(mcp)
    mcp.set_defaults(run=agents.run)
    check = commands.add_parser("doctor", help="is everything here that the jobs need")
    check.set_defaults(run=lambda _: doctor.main())
    completion = commands.add_parser("completion", help="completion for bash and zsh")
    completion.set_defaults(run=lambda _: print(command_line.completion(parser)) or 0)
    return parser


def _add_what_comes_before(commands: Any) -> None:
    before = commands.add_parser("preflight", help="what a cluster can lose as it is now")
    preflight.arguments(before)
    before.set_defaults(run=preflight.run)
    drill = commands.add_parser(
        "drill", help="load, faults, collection, diagnose: does a cluster keep what it acknowledges"
    )
    drilling.arguments(drill)
    command_line.judged_arguments(drill)
    command_line.answer_arguments(drill)
    drill.set_defaults(run=_drill)


def _read(arguments: argparse.Namespace, *, keep_events: bool = False) -> Diagnosis:
    imported = _imported(arguments)
    progress.doing("judging")
    for note in imported.notes:
        print(f"note: {plain(note)}", file=sys.stderr)
    if imported.collection.event_dumps:
        # A dump may tell of the same partitions in any order: all has to be at hand at once.
        dumped, misfits = _dumped(imported, arguments.topics)
        events = _of_one_incident([*imported.events(), *dumped], arguments.incident)
        groups: Iterable[list[Event]] = [events]
    else:
        misfits = Misfits()
        groups = (
            list(imported.events_of(i))
            for i in progress.steps(range(len(imported.partitions)), "partitions judged")
        )
    strict = getattr(arguments, "strict", False)
    diagnosis = _folded(imported, groups, misfits, keep_events, strict=strict)
    _print_late_notes(imported)
    _print_unknown_releases(diagnosis.answer["clusters"])
    if not diagnosis.answer["input"]["events"] - misfits.rows:
        if arguments.topics:
            raise Unusable(imported.no_topic(arguments.topics))
        if imported.collection.event_dumps:
            first = next(iter(misfits.places()), None)
            raise Unusable(
                "the event dumps hold no event of the contract; first misfit: "
                f"{first.path} {first.where}: {first.reason}"
                if first is not None
                else "the event dumps are empty"
            )
    return diagnosis


def _read_partitions(arguments: argparse.Namespace, *, keep_events: bool = False) -> Diagnosis:
    """As _read; Unusable where the evidence names no partition to answer of."""
    diagnosis = _read(arguments, keep_events=keep_events)
    if not diagnosis.folded:
        raise Unusable(diagnosis.imported.nothing(frozenset()))
    return diagnosis


def _print_late_notes(imported: Import) -> None:
    """What only came to light while the events of the partitions were made."""
    for _, notes in sorted(imported.late_notes.items()):
        for note in notes:
            print(f"note: {plain(note)}", file=sys.stderr)


def _print_unknown_releases(clusters: list[dict[str, Any]]) -> None:
    """Which releases the evidence names whose rules are not known: nothing rests on these then."""
    for version in sorted({v for cluster in clusters for v in cluster["kafka_versions"]}):
        try:
            behaviour(version)
        except ValueError as error:
            print(
                f"note: the evidence names a release: {plain(str(error))}; --kafka names it",
                file=sys.stderr,
            )


def _imported(arguments: argparse.Namespace) -> Import:
    if arguments.kafka:
        try:
            behaviour(arguments.kafka)
        except ValueError as error:
            raise Unusable(f"--kafka: {error}") from None
    try:
        told = command_line.told_of(arguments)
    except ValueError as error:
        raise Unusable(str(error)) from None
    paths = [*arguments.paths, *(p for p in told.brokers if not _is_below(p, arguments.paths))]
    if not paths:
        raise Unusable("no PATH given: which evidence?")
    progress.doing("reading the evidence")
    with spread_over(paths, arguments.processes) as spread:
        return import_evidence(
            paths,
            kafka_version=arguments.kafka,
            topics=arguments.topics,
            generation=getattr(arguments, "generation", 0),
            incident=arguments.incident or "",
            spread=progress.spread(spread),
            told=told,
            payload_id_in=arguments.payload_id_in,
        )


def _is_below(path: Path, roots: list[Path]) -> bool:
    around = {path.resolve(), *path.resolve().parents}
    return any(root.resolve() in around for root in roots)


def _dumped(imported: Import, topics: frozenset[str]) -> tuple[list[Event], Misfits]:
    """The events of all dumps, only of topics that are named, where some are, and what is none."""
    events: list[Event] = []
    misfits = Misfits()
    for path in imported.collection.event_dumps:
        for item in read_events(path):
            if isinstance(item, Unreadable):
                misfits.add(item)
            elif not topics or item.topic in topics:
                events.append(item)
    return events, misfits


def _of_one_incident(events: list[Event], incident: str | None) -> list[Event]:
    """The events of an incident, and those that name none; not told which: all are of one."""
    named = sorted({e.incident for e in events} - {""})
    if incident is None:
        if len(named) > 1 or (named and any(not e.incident for e in events)):
            others = "" if len(named) > 1 else ", and events that name none"
            raise Unusable(
                f"the event dumps are of several incidents ({', '.join(named)}{others}): which one "
                "is meant, say by --incident NAME"
            )
        return events
    kept = [e for e in events if e.incident in ("", incident)]
    if events and not kept:
        raise Unusable(f"no incident {incident} in the event dumps; they name {', '.join(named)}")
    if len(kept) < len(events):
        others = ", ".join(n for n in named if n != incident)
        print(
            f"note: {counted(len(events) - len(kept), 'event')} of other incidents ({others}) "
            "passed by",
            file=sys.stderr,
        )
    return kept


def _folded(
    imported: Import,
    groups: Iterable[list[Event]],
    misfits: Misfits,
    keep_events: bool,
    *,
    strict: bool,
) -> Diagnosis:
    """Folds groups of events that share no partition, one after the other."""
    folded: list[FoldedPartition] = []
    kept: list[Event] = []
    sources: dict[str, Event] = {}
    count = misfits.rows
    incident = imported.incident
    for events in groups:
        count += len(events)
        incident = incident or (events[0].incident if events else "")
        more = fold_all(events, strict=strict)
        named = {step["event_id"] for f in more for x in f.answer.findings for step in x["witness"]}
        sources.update((e.event_id, e) for e in events if e.event_id in named)
        folded += more
        if keep_events:
            kept += events
    folded.sort(key=lambda f: f.identity)
    several = [(f"{f.identity[1]}-{f.identity[3]}", f.several_imports or "") for f in folded]
    for note in of_first_partitions((name, said) for name, said in several if said):
        print(f"note: {plain(note)}", file=sys.stderr)
    for partition in folded:
        if partition.defect is not None:
            _, topic, _, number = partition.identity
            print(f"{topic}-{number}: a defect of this tool: {partition.defect}", file=sys.stderr)
    counts = _counts(imported, count, misfits, folded)
    answers = [f.answer for f in folded]
    for f in folded:
        empty = imported.empty.get(f.identity, ())
        for found in (f.answer.losses, f.answer.at_risk, f.answer.past_risks) if empty else ():
            count_records(found, empty)
        # Where no record is in danger there is nothing that anybody could miss.
        f.answer.at_risk[:] = [x for x in f.answer.at_risk if x["records"]]
        f.answer.past_risks[:] = [x for x in f.answer.past_risks if x["records"]]
        told = imported.removals.get(f.identity, NO_REMOVALS)
        f.answer.removed[:] = [told.added_to(row) for row in f.answer.removed]
    rows = imported.observations
    answer = assemble(
        _clusters(imported, folded, rows), counts, answers, imported.inventory, rows,
        incident or None,
    )  # fmt: skip
    acknowledgements = told_once(imported.collection.acknowledgements)
    name_clients(
        answer,
        acknowledgements,
        by_time=imported.clocks_compare,
        cluster_of=imported.cluster_of if len(imported.files) > 1 else None,
    )
    return Diagnosis(imported, kept, folded, answer, sources)


def _counts(
    imported: Import, rows: int, misfits: Misfits, folded: list[FoldedPartition]
) -> dict[str, Any]:
    total = {"applied": 0, "duplicates": 0, "quarantined": misfits.rows, "held": 0, "superseded": 0}
    for partition in folded:
        for name, count in partition.counts.items():
            total[name] += count
    unreadable = [*imported.unreadable, *misfits.places()]
    counts: dict[str, Any] = {"files": imported.collection.files, "events": rows, **total}
    # Events of a superseded trace are duplicates of what a newer import says again.
    counts["duplicates"] += counts["superseded"]
    counts["unreadable"] = [
        {"path": u.path, "where": u.where, "reason": u.reason} for u in unreadable
    ]
    return counts


def _clusters(
    imported: Import, folded: list[FoldedPartition], observed: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    named = brokers_of(observed)
    clusters: dict[str, dict[str, Any]] = {}
    for cluster in imported.clusters:
        cluster.brokers = sorted({*cluster.brokers, *named.get(cluster.cluster_id, ())})
        if cluster.brokers or cluster.kafka_versions or cluster.cluster_id:
            clusters[cluster.cluster_id] = {
                "cluster_id": cluster.cluster_id or None,
                "kafka_versions": cluster.kafka_versions,
                "controller": cluster.controller,
                "brokers": cluster.brokers,
            }
    for partition in folded:
        settings = partition.state.settings
        known = clusters.setdefault(
            partition.identity[0],
            {
                "cluster_id": partition.identity[0] or None,
                "kafka_versions": [settings.kafka_version] if settings.kafka_version else [],
                "controller": settings.controller,
                "brokers": [],
            },
        )
        known["brokers"] = sorted(set(known["brokers"]) | set(partition.state.replicas))
    return [clusters[key] for key in sorted(clusters)]


def _diagnose(arguments: argparse.Namespace) -> int:
    diagnosis = _read(arguments, keep_events=bool(arguments.report))
    if not diagnosis.folded:
        told = diagnosis.imported.nothing(frozenset())
        # A broker that failed prints lines that name no partition: those are answered.
        if not any(sentence(row) for row in diagnosis.answer["observations"]):
            raise Unusable(told)
        print(f"note: {plain(str(told))}", file=sys.stderr)
    diagnosis.answer.update(who_was_hurt(diagnosis.imported, diagnosis.folded, diagnosis.answer))
    if arguments.format == "json":
        print(to_json(diagnosis.answer))
    else:
        text = words.short_text(diagnosis.answer)
        print(words.with_paths(text, words.as_called(arguments)), end="")
    sys.stdout.flush()
    if arguments.report:
        # Last: a place that cannot be written to does not cost the answer.
        progress.doing(f"writing {arguments.report}")
        _write_report(arguments.report, diagnosis)
    beside = undecided_beside_the_table(diagnosis.answer) if arguments.strict else []
    if beside:
        print(
            "note: with --strict the exit status is 3 because of what is UNKNOWN beside the table: "
            f"{', '.join(beside)} (--format json has the reason of each)",
            file=sys.stderr,
        )
    return exit_status(diagnosis.answer, arguments.strict)


def _write_report(path: Path, diagnosis: Diagnosis) -> None:
    by_partition: dict[Identity, list[Event]] = {}
    for event in diagnosis.events:
        by_partition.setdefault(identity_of(event), []).append(event)
    try:
        write_page(path, diagnosis.answer, by_partition, _quotes(diagnosis), _beside(diagnosis))
    except OSError as error:
        raise Unusable(f"--report {path}: {error.strerror}") from None
    print(f"report: {path}", file=sys.stderr)


def _quotes(diagnosis: Diagnosis) -> Quotes:
    """Reads lines of the evidence by the places that the answer names, archives opened."""
    real = diagnosis.imported.collection.unpacked.real
    return partial(read_lines, lines_of=lambda place: lines_of(real(place)))


def _beside(diagnosis: Diagnosis) -> Beside:
    """What the page has besides the answer, where that sends its reader to `decide` and `trace`."""
    imported, folded, answer = diagnosis.imported, diagnosis.folded, diagnosis.answer
    if not sends_to_decide(answer):
        return NOTHING_BESIDE
    return Beside(
        decisions_html(list(due((f.state for f in folded if not f.defect), ended_in(imported)))),
        records_html(imported, folded, answer),
    )


def ended_in(imported: Import) -> dict[str, frozenset[int]]:
    """By cluster, the brokers that are down by its metadata log or by their own last lines."""
    return {cluster.cluster_id: cluster.ended for cluster in imported.clusters}


def _import(arguments: argparse.Namespace) -> int:
    imported = _imported(arguments)
    nothing = imported.nothing(arguments.topics)
    if nothing:
        raise Unusable(nothing)
    for path in imported.collection.event_dumps:
        print(f"note: {path}: holds events already and was not imported", file=sys.stderr)
    progress.doing(f"writing {arguments.out}")
    events = (
        event
        for index in progress.steps(range(len(imported.partitions)), "partitions written")
        for event in imported.events_of(index)
    )
    try:
        count = write_events(arguments.out, events)
    except OSError as error:
        raise Unusable(f"{arguments.out}: {error.strerror}") from None
    for note in imported.notes:
        print(f"note: {plain(note)}", file=sys.stderr)
    _print_late_notes(imported)
    for place in imported.unreadable:
        told = plain(f"{place.path} ({place.where}): {place.reason}")
        print(f"unreadable: {told}", file=sys.stderr)
    told = counted(len(imported.partitions), "partition")
    print(f"{counted(count, 'event')} of {told} in {arguments.out}")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    diagnosis = _read_partitions(arguments, keep_events=True)
    topic, _, number = arguments.topic_partition.rpartition("-")
    if not topic or not number.isdigit():
        raise Unusable(f"--topic-partition {arguments.topic_partition}: expected TOPIC-NUMBER")
    chosen = [f for f in diagnosis.folded if (f.identity[1], f.identity[3]) == (topic, int(number))]
    if not chosen:
        known = ", ".join(f"{f.identity[1]}-{f.identity[3]}" for f in diagnosis.folded[:10])
        raise Unusable(f"no {arguments.topic_partition} in this evidence; known: {known}")
    for folded in chosen:
        events = [
            e
            for e in diagnosis.events
            if (e.cluster_id, e.topic, e.topic_id, e.partition) == folded.identity
        ]
        if len(chosen) > 1:
            print(f"Topic id {folded.identity[2] or 'not known'}:")
        print(words_of_moment(events, folded, arguments.at))
    return 0


def words_of_moment(events: list[Event], folded: FoldedPartition, at: int | None) -> str:
    """The replicas' logs after the event with sequence number at, drawn."""
    if at is not None:
        known = [e for e in events if e.sequence <= at]
        if not known:
            raise Unusable(f"--at {at}: the first event has sequence {events[0].sequence}")
        folded = fold_all(known)[0]
    return words.draw(folded.state, at)


def _explain(arguments: argparse.Namespace) -> int:
    if arguments.paths and Path(arguments.finding_id).exists() and not arguments.paths[-1].exists():
        # PATH and finding the other way round.
        path, arguments.finding_id = Path(arguments.finding_id), str(arguments.paths.pop())
        arguments.paths.append(path)
    word = str(arguments.finding_id)
    page = explained_words.explained(word)
    if page is not None:
        print(page, end="")
        if arguments.paths and explained_words.is_of_rows(word):
            found = list(explained_words.in_evidence(word, _read(arguments).answer))
            print("\nIn this evidence:", *(found or ["  nothing"]), sep="\n")
        return 0
    near = did_you_mean(word, explained_words.words())
    if near and not arguments.paths:
        raise Unusable(f"{word}: no word that is explained{near}; a finding needs a PATH")
    diagnosis = _read_partitions(arguments)
    for finding in diagnosis.answer["findings"]:
        if finding["finding_id"].startswith(arguments.finding_id):
            names = ("cluster_id", "topic", "topic_id", "partition")
            derived = [
                d
                for p in diagnosis.answer["partitions"]
                if all(p[n] == finding[n] for n in names)
                for d in p["derived"]
            ]
            print(words.proof(finding, diagnosis.sources, derived, _quotes(diagnosis)), end="")
            return 0
    open_questions = open_questions_of(diagnosis.answer, arguments.finding_id)
    if open_questions:
        print("\n".join(map(two_histories_text, open_questions)), end="")
        return 0
    raise Unusable(plain(instead(diagnosis.answer, word, near)))


def _recover(arguments: argparse.Namespace) -> int:
    began = time.time_ns()
    try:
        if produce_command.is_only_produced(arguments):
            return produce_command.run(arguments)
        refuse_early(arguments.out, arguments.paths)
        diagnosis = _read_partitions(arguments)
        status = recovery.run(
            arguments, diagnosis.imported, diagnosis.folded, diagnosis.answer, began
        )
        if not arguments.produce:
            return status
        return recovery.worse(status, produce_command.run(arguments))
    except BrokenPipeError:
        raise
    except (NotUsable, OSError) as error:
        raise Unusable(str(error)) from None


def _trace(arguments: argparse.Namespace) -> int:
    began = time.time_ns()
    try:
        wanted = trace_command.asked(arguments)
        diagnosis = _read_partitions(arguments)
        return trace_command.run(
            arguments, wanted, diagnosis.imported, diagnosis.folded, diagnosis.answer, began
        )
    except NotUsable as error:
        raise Unusable(str(error)) from None


def _groups(arguments: argparse.Namespace) -> int:
    diagnosis = _read_partitions(arguments)
    return groups_command.run(arguments, diagnosis.imported, diagnosis.folded, diagnosis.answer)


def _decide(arguments: argparse.Namespace) -> int:
    if arguments.state is not None and not arguments.paths:
        return decisions.go_on(arguments)
    if arguments.passed:
        raise Unusable("--passed goes with --state FILE and without evidence")
    diagnosis = _read_partitions(arguments)
    ended = ended_in(diagnosis.imported)
    return decisions.run(arguments, diagnosis.folded, diagnosis.answer, ended)


def _collect(arguments: argparse.Namespace) -> int:
    if arguments.platform is not None:
        if arguments.paths:
            raise Unusable(
                "--for prints a script and takes no PATH; a PATH alone says what it lacks"
            )
        print(collecting.script(arguments.platform), end="")
        return 0
    if not arguments.paths:
        raise Unusable(f"--for PLATFORM or a PATH: {', '.join(collecting.PLATFORMS)}")
    return collecting.run(arguments, _read(arguments).answer)


def _whatif(arguments: argparse.Namespace) -> int:
    asked = whatif_command.interventions(arguments)
    if not asked:
        arguments.report, arguments.strict = None, False
        return _diagnose(arguments)
    diagnosis = _read_partitions(arguments, keep_events=True)
    events: dict[Identity, list[Event]] = {}
    for event in diagnosis.events:
        events.setdefault(identity_of(event), []).append(event)
    return whatif_command.run(arguments, asked, diagnosis.answer, lambda i: events[i])


def _drill(arguments: argparse.Namespace) -> int:
    try:
        plan = drilling.run(arguments)
    except (NoDrill, BadPlan, NotUsable) as error:
        raise Unusable(str(error)) from None
    if plan is None:
        return 0
    arguments.paths = [plan.evidence]
    arguments.topics = arguments.topics or frozenset(topic.name for topic in plan.topics)
    arguments.report = arguments.report or plan.page
    told = sys.stdout if arguments.format == "text" else sys.stderr
    print(*drilling.summary(plan), "", sep="\n", file=told)
    return _diagnose(arguments)


def _versions(arguments: argparse.Namespace) -> int:
    if arguments.kafka:
        try:
            flags = behaviour(arguments.kafka)
        except ValueError as error:
            raise Unusable(str(error)) from None
        print(f"Kafka {arguments.kafka}: truncation by {flags.truncation}")
        for row in flag_table():
            print(f"  {'on ' if flags.has(row.flag) else 'off'}  {row.flag}: {row.means}")
        return 0
    for row in flag_table():
        until = f" until {row.until}" if row.until else ""
        needs = f" (needs {row.inter_broker_version})" if row.inter_broker_version else ""
        print(f"{row.flag}: from {row.since}{until}{needs} [{row.source}]\n    {row.means}")
    print()
    for setting, value in default_table():
        print(f"{setting}: {value}")
    return 0

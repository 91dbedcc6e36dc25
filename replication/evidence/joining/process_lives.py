"""The lives of a broker's process that its lines tell, and what each prints.

A broker that is upgraded keeps its log: one life prints lines of its own as it begins to lead or to
follow, the one before has nothing but the controller's requests.
"""

from collections.abc import Iterator

from replication.evidence.broker_logs.broker_log import LogLineFact


def lives_of(lines: list[LogLineFact]) -> Iterator[tuple[str | None, frozenset[str]]]:
    """The version that each life runs, the one before the first start included, and the kinds of
    lines that this version prints.

    A broker prints its version when its logs are loaded already. Where a life does not tell its
    version, its own lines say what it prints, if a request for a role is among them; else anything
    that any life prints may be.
    """
    lives: list[tuple[str | None, set[str]]] = [(None, set())]
    for fact in lines:
        if fact.kind == "process_started":
            lives.append((None, set()))
            continue
        version, kinds = lives[-1]
        kinds.add(fact.kind)
        if fact.kind == "kafka_version":
            lives[-1] = version or str(fact.fields["version"]), kinds
    for version, own in lives:
        if version is None and "leader_and_isr_received" in own:
            yield None, frozenset(own)
        else:
            same = (kinds for other, kinds in lives if version in (None, other))
            yield version, frozenset().union(*same)

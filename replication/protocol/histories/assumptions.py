"""What is taken for granted unless the evidence speaks against it: named, and said aloud.

A person who knows Kafka fills small gaps without thinking. So do the histories, but each such step
has a name, a sentence, what withdraws it, and what makes it unnecessary. A verdict names those that
it rests on; under --strict none is made.
"""

from dataclasses import dataclass, replace

REPLICAS_AS_SEEN = "replicas_as_seen"
COPIES_ARE_CURRENT = "copies_are_current"
DISKS_KEEP = "disks_keep"
REPLACED_LEADERS_HAD_STOPPED = "replaced_leaders_had_stopped"
ELECTIONS_AS_RECORDED = "elections_as_recorded"
LEADERS_IN_SYNC = "leaders_were_in_sync"
EVERY_SEND_IS_KNOWN = "every_send_is_known"
RECORDS_AS_SEEN = "records_as_seen"
TOPIC_CREATED_ONCE = "topic_created_once"
CLOCKS_AGREE = "clocks_agree"
LINES_ARE_MISSING = "lines_are_missing"
NOTHING_BEFORE = "nothing_before"
# What `collect` names as missing, by how it begins.
_ACKNOWLEDGEMENTS, _BROKER_LOG = "an acknowledgement log", "the broker log of broker"
_DIRECTORY = "the log directory of broker"
# Under either of these no record is thought of that nothing shows.
NOTHING_UNSEEN = frozenset((EVERY_SEND_IS_KNOWN, RECORDS_AS_SEEN))
# What is false of an election at one offset is false at all.
OF_ELECTIONS = frozenset((ELECTIONS_AS_RECORDED, LEADERS_IN_SYNC))
# What decides which replicas, steps and answers to clients there are.
OF_THE_TIMELINE = frozenset(
    (REPLICAS_AS_SEEN, NOTHING_BEFORE, TOPIC_CREATED_ONCE, CLOCKS_AGREE, LINES_ARE_MISSING)
)


@dataclass(frozen=True, slots=True)
class Assumption:
    """One thing that is taken for granted. withdrawn_by: what in the evidence speaks against it;
    unnecessary_with: what to hand over so that nothing need be assumed; of that, spared_by is what
    `collect` names as missing, by how it begins."""

    name: str
    sentence: str
    withdrawn_by: str
    unnecessary_with: str
    spared_by: tuple[str, ...] = ()


ASSUMPTIONS = {
    a.name: a
    for a in (
        Assumption(
            REPLICAS_AS_SEEN,
            "the brokers whose log directories or lines show the partition are all its replicas",
            "a line, an ISR or a checkpoint that names another broker; that only one was seen",
            "`kafka-topics --describe`, or the metadata log",
        ),
        Assumption(
            COPIES_ARE_CURRENT,
            "the copies of log directories were taken together and show the logs as they are",
            "a line or another copy which shows that the broker lived on and wrote",
            "a copy of the cleanly stopped broker, or its broker log up to the copy",
            (_BROKER_LOG,),
        ),
        Assumption(
            DISKS_KEEP,
            "no disk lost records beyond what the evidence shows",
            "a start below a log end that was seen before, an emptied or new directory",
            "the broker log of every replica from a start on, or an acknowledgement log",
            (_ACKNOWLEDGEMENTS, _BROKER_LOG),
        ),
        Assumption(
            REPLACED_LEADERS_HAD_STOPPED,
            "a leader that was replaced committed nothing after the election of the next",
            "its own lines that go on after the election",
            "its broker log, with kafka.cluster.Partition at DEBUG",
            (_BROKER_LOG,),
        ),
        Assumption(
            ELECTIONS_AS_RECORDED,
            "nobody led in a leader epoch that no line, log or record names",
            "a record that no leader of a named epoch can have written or removed",
            "the controller's history (metadata log, state-change.log of the controller)",
        ),
        Assumption(
            LEADERS_IN_SYNC,
            "every leader of whose election nothing tells the kind had been in sync",
            "a record or a line of an unclean election, an ISR without the leader, a log that "
            "begins a leader epoch below what was committed",
            "the controller's history (metadata log, state-change.log of the controller)",
        ),
        Assumption(
            EVERY_SEND_IS_KNOWN,
            "no record was written that the acknowledgement log does not name",
            "a record in a line or a log that no known send wrote",
            "--all-producers in the call, if that is so and every send was answered",
        ),
        Assumption(
            NOTHING_BEFORE,
            "nothing was lost before the first line of a broker's log that its first lines do not "
            "show",
            "a record that cannot have been written since",
            "broker logs from the creation of the topic on, or an acknowledgement log",
            (_ACKNOWLEDGEMENTS, _BROKER_LOG),
        ),
        Assumption(
            RECORDS_AS_SEEN,
            "no record was written that no log, line or answer to a client shows",
            "an unclean election, a cut, a start below a log end that was seen before or that "
            "drops damaged records, two records at one offset",
            "an acknowledgement log of all producers, or the broker log of every replica from a "
            "start on",
            (_ACKNOWLEDGEMENTS, _BROKER_LOG),
        ),
        Assumption(
            TOPIC_CREATED_ONCE,
            "the topic was not deleted and created anew after the first acknowledgement",
            "a line, a record of the metadata log or a second topic id that shows another topic of "
            "that name",
            "the metadata log, or the broker log of a replica from the first acknowledgement on",
            (_BROKER_LOG,),
        ),
        Assumption(
            CLOCKS_AGREE,
            "the clocks tell which came first, an acknowledgement or the election of the next "
            "leader, where they are more than two seconds apart",
            "a log that shows an acknowledged record under a leader epoch that began later by the "
            "clocks; an acknowledgement before the first leader; a time zone that nothing tells",
            "a copy of a log that has the record, or one of a later time that ends past its offset",
            (_DIRECTORY,),
        ),
        Assumption(
            LINES_ARE_MISSING,
            "lines of a broker's log are missing, though nothing else shows it: if none is, no "
            "history fits the evidence",
            "a history that fits without it",
            "every broker's whole log, from before the incident to the last copy",
            (_BROKER_LOG,),
        ),
    )
}


@dataclass(frozen=True, slots=True)
class Assumed:
    """What one search takes for granted. unseen_losses: how many losses of one record with a disk
    are admitted though nothing shows them: 0, 1 or (None) any number. moments_known: copies that
    are not a broker's last one were taken where its steps have them; else only their records
    count. heard_early: followers heard of a leader's next epoch before that leader did."""

    names: frozenset[str] = frozenset()
    unseen_losses: int | None = None
    moments_known: bool = True
    heard_early: bool = False


STRICT = Assumed()
# Where even so no history is left, a copy may be of another moment than it was placed at.
WIDEST = Assumed(moments_known=False)
# Where none is left then either, and fetches carry no leader epoch.
HEARD_EARLY = Assumed(heard_early=True)
# At last, but not strictly: what contradicts itself may be misread as well.
LINES_MISSING = Assumed(frozenset((LINES_ARE_MISSING,)))
EVERYTHING = Assumed(frozenset(ASSUMPTIONS) - LINES_MISSING.names, 0)


def only(assumed: Assumed, names: frozenset[str]) -> Assumed:
    """The same with no other names than these."""
    names &= assumed.names
    losses = assumed.unseen_losses if DISKS_KEEP in names else None
    return replace(assumed, names=names, unseen_losses=losses)


def without(assumed: Assumed, name: str) -> Assumed:
    """The same without one of its names."""
    return only(assumed, assumed.names - {name})

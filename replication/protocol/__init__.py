"""Theory of operation: how Kafka keeps a partition's replicas equal, and how that is judged here.

A partition is a log on several brokers. One leads: producers write to it, followers fetch from it.
Every record has an offset and, since 0.11, the leader epoch in which it was first written. A
follower keeps the leader's bytes, so offset and epoch together name a record. In the drawings
(picture.py) a line is a replica: `*` leads, `!` is stopped, then the leader epoch it knows, then
its records as `<leader epoch>:<record>` from offset 0, and `|` at its high watermark:

    A  e0  0:m1 | 0:m2
    B* e0  0:m1 0:m2 |

**High watermark.** Offsets below it are committed: the leader knows that all in-sync replicas hold
them. A fetch at offset n proves that the follower holds everything below n; the leader's high
watermark is the smallest such proof among the replicas it waits for, and never falls while it
leads. A follower is told with the next answer, so it trails by one fetch. Above, A has m2 and has
proved it, B has committed it, and A does not know yet. A follower's high watermark is what it was
last told, cut to its log; it may lawfully fall when a new leader, itself a former follower, trails.

**In-sync replicas.** The ISR is the set whom the leader waits for. A follower that has not caught
up for replica.lag.time.max.ms leaves it, one that has reached the high watermark (from 2.0.1 also
the start of the leader epoch) may join it. The controller must confirm a change; until then, from
2.7, the leader counts the larger of the two sets, so that whoever may be elected holds what was
committed. acks=all waits for the high watermark and asks for min.insync.replicas members; acks=1
waits for nobody. So committed and acknowledged are two sets, and neither contains the other.

**Leader epoch.** The controller numbers leaderships. Each replica caches where in its log each
epoch starts: `0@0 2@7` means epoch 0 from offset 0 and epoch 2 from 7. Where the caches of two
replicas agree on an epoch, their logs agree up to the smaller of that epoch's two ends; so the last
common epoch says where two logs part. An epoch in which nothing was written is normal.

**Elections.** The first replica in assignment order that is alive and in the ISR; if there is none,
nobody, unless unclean election is allowed: then the first one alive, whatever it holds. KRaft keeps
a leader that may stay. With eligible leader replicas (4.0) the controller also remembers who, out
of the ISR, surely has every committed record. A leader never truncates. A follower makes its log
the leader's: it must cut what the leader never had, and should cut nothing else. How it finds the
place is what the generations changed:

1. *To its high watermark* (0.8 - 0.10.2). What it does not know to be committed goes. But it knows
   late: A restarts, cuts m2, B dies, A leads. m2 was committed and is gone.

       A* e1  0:m1 |
       B! e-  0:m1 0:m2 |

   Nor does it cut enough: if A now writes m3, B returns, believes offset 1 committed, and keeps m2.

       A* e1  0:m1 1:m3 |
       B  e1  0:m1 0:m2 |

2. *To where the leader's log ends the follower's latest epoch* (KIP-101, 0.11). Mends both: B asks
   for epoch 0, hears 1, cuts m2. But the leader may never have seen that epoch. Below, two quick
   elections: B led epoch 2, A never heard of it and leads epoch 3. B asks for 2, hears where A's
   next one starts, 3, and keeps y.

       A* e3  1:x*3 3:z
       B  e2  1:x 2:y*2

3. *To the last common epoch, in rounds* (KIP-279, 2.0). A answers with the largest epoch it has up
   to the one asked, 1, and its end; B finds its own end of epoch 1, which is 1, and cuts there.
   2.0.1 also made leaders cache their epoch at election (else they answer "undefined", and the
   follower falls back to its high watermark), and made followers check again after a missed epoch.
4. *Fenced* (KIP-320, 2.1). Requests carry the leader epoch. A replica that slept through an
   election can no longer fetch on from where it was, and a deposed leader's answers are refused.
5. *On fetch* (2.8). The follower names its last epoch in each fetch, and the answer says where the
   logs part: the same formula without a phase of its own. It came with two faults: up to 2.8.0 such
   a fetch counted as progress at the leader (KAFKA-13141), up to 3.4.0 the follower took the
   answer's high watermark before it cut (KAFKA-14704).
6. *Below min.insync.replicas nothing is committed* (3.7), and eligible leader replicas (4.0).
   Epochs cannot bring back what disks lose: before, the last replica standing could return from a
   power failure with less, be elected, and be followed. Now another one that has all is remembered.

**What this package does.** Four rooms, each looking only downwards. ground/: events.py has one fact
a class (what a replica, the controller or a client did), topic_partition.py the State, whose logs
are runs of records, not records; versions.py says as flags which rules a Kafka version lives by,
boundaries.py since when. rules/: one file, one rule, one pure function. folding/: fold.py takes
events one by one into the State by what steps/ has for each, once conformance/ has held it against
the rules. judgement/: the invariants (invariants/, one promise a file) read it, and judge.py
answers: HOLDS, VIOLATED with the steps that prove it, or UNKNOWN with what would decide.

The machine (replication/machine, above this package) acts on the rules' answers and emits facts:
thus scenarios tell a story in commands and pictures, under one version and then another, and the
fold judges what came of it. Rules that were superseded stay, each with the scenario in
tests/scenarios/ that breaks it; tests hold the machine against a naive model that stores every
record.

The core knows no clock, no files and no third party; offsets that end something are exclusive;
absent is None. What is not modelled: tiered storage, the metadata quorum, several partitions in one
request, segments, and record batches within a run.
"""

"""Histories: judging by everything that may have happened.

A history is one complete story of a partition that the rules of its release allow. The evidence
admits some histories and excludes others. A promise holds where every admitted history keeps it, is
violated where every one breaks it, and is unknown where both kinds are admitted.

How a verdict comes about, in the order of the files:

1. `filters/timeline.py` makes a timeline of what the fold noted (ground/story.py): each broker's
   own steps in its own order, and a window for each leader epoch with its leader and its ISRs. No
   order across brokers is read.
2. `filters/at_offset.py` cuts the offsets into runs that share one story. One offset of each run
   is asked for all: there a log is a record or none, and a high watermark is above it or not.
3. `search.py` follows the run leader epoch by leader epoch: `lead.py` the leader of each,
   `follow.py` the others. What an actor may do unseen is in `moves/`, which ask `rules/` through
   `moves/by_rule.py`; what its own steps admit is in `filters/own_steps.py`; `engine.py` walks, and
   knows no word of Kafka. What can have happened before evidence names an offset is the same
   for all offsets above it: `beginnings.py` keeps it for them.
4. The last copies of the logs and what clients were told (`filters/clients.py`: of which topic, and
   written by when) are asked at the end: what is left are the ends that the evidence admits.
5. `ask.py` puts a question to them, with the assumptions of `assumptions.py` and with fewer.

Less evidence admits more histories, so nothing needs a rule for evidence that is withheld. A move
that is missing, or a filter that is too narrow, shows as evidence that no history explains: that is
said and counted, and never a verdict.
"""

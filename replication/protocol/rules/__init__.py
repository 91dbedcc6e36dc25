"""The rules of Kafka's replication: one file, one rule, one function, one name.

A rule is a pure function from values to an answer; who asks acts on it (the machine, the fold).
RULES is the table of contents, in the order of docs/protocol.md 3.
"""

from collections.abc import Callable
from typing import Any

from replication.protocol.rules.acknowledge import acknowledge
from replication.protocol.rules.become_leader import become_leader
from replication.protocol.rules.broker_registration import broker_registration
from replication.protocol.rules.consumer_visibility import consumer_visibility
from replication.protocol.rules.controller_fencing import controller_fencing
from replication.protocol.rules.election_kraft import election_kraft
from replication.protocol.rules.election_zookeeper import election_zookeeper
from replication.protocol.rules.eligible_leader_replicas import eligible_leader_replicas
from replication.protocol.rules.fetch_admission import fetch_admission
from replication.protocol.rules.fetch_response_high_watermark import fetch_response_high_watermark
from replication.protocol.rules.high_watermark_of_follower import high_watermark_of_follower
from replication.protocol.rules.high_watermark_of_leader import high_watermark_of_leader
from replication.protocol.rules.isr_commit import isr_commit
from replication.protocol.rules.isr_expand import isr_expand
from replication.protocol.rules.isr_shrink import isr_shrink
from replication.protocol.rules.last_caught_up import last_caught_up
from replication.protocol.rules.last_stable_offset import last_stable_offset
from replication.protocol.rules.log_start import log_start
from replication.protocol.rules.out_of_range_reset import out_of_range_reset
from replication.protocol.rules.preferred_leader_imbalance import preferred_leader_imbalance
from replication.protocol.rules.produce_admission import produce_admission
from replication.protocol.rules.producer_sequence import producer_sequence
from replication.protocol.rules.reassignment import reassignment
from replication.protocol.rules.start_up_recovery import start_up_recovery
from replication.protocol.rules.topic_identity import topic_identity
from replication.protocol.rules.truncate_by_common_epoch import truncate_by_common_epoch
from replication.protocol.rules.truncate_on_fetch import truncate_on_fetch
from replication.protocol.rules.truncate_to_high_watermark import truncate_to_high_watermark
from replication.protocol.rules.truncate_to_leader_end_offset import truncate_to_leader_end_offset
from replication.protocol.rules.truncation_effect import truncation_effect
from replication.protocol.rules.when_to_truncate import when_to_truncate

RULES: tuple[Callable[..., Any], ...] = (
    produce_admission,
    producer_sequence,
    acknowledge,
    fetch_admission,
    fetch_response_high_watermark,
    high_watermark_of_follower,
    high_watermark_of_leader,
    last_caught_up,
    isr_shrink,
    isr_expand,
    isr_commit,
    become_leader,
    when_to_truncate,
    truncate_to_high_watermark,
    truncate_to_leader_end_offset,
    truncate_by_common_epoch,
    truncate_on_fetch,
    truncation_effect,
    out_of_range_reset,
    start_up_recovery,
    controller_fencing,
    election_zookeeper,
    election_kraft,
    eligible_leader_replicas,
    broker_registration,
    preferred_leader_imbalance,
    reassignment,
    consumer_visibility,
    last_stable_offset,
    log_start,
    topic_identity,
)

-- SQL of benchmarks/quality.py: the tables that it makes, and the checks that somebody would write by hand.
-- Names in braces are filled in.

-- made: replica_states
SELECT concat('cluster/topic/id/', p) AS topic_partition_id, 'cluster' AS cluster_id, CAST(NULL AS STRING) AS incident,
  'topic' AS topic, 'id' AS topic_id, p AS partition, r AS replica, IF(p % {one_in} = 11, -1L, 0L) AS log_start_offset,
  3000L + p % 50 + IF(p % {one_in} = 16 AND r = 1 + p % 3, 50000, 0) AS log_end_offset, 2000L AS high_watermark,
  transform(sequence(0, 4), i -> named_struct('leader_epoch', IF(p % {one_in} = 13, 9L - i, CAST(i AS BIGINT)),
    'first_offset', i * 500L - IF(p % {one_in} = 12 AND i > 0, 7, 0), 'end_offset', (i + 1) * 500L)) AS spans,
  '2026-01-01T00:00:00.000Z' AS as_of, false AS stopped,
  IF(p % 6 = 1, 1 + (p + 1) % 3, 1 + p % 3) AS leader, IF(p % {one_in} = 17 AND r = 2, 5L, 4L) AS leader_epoch,
  IF(p % {one_in} = 14, array(1L), array(1L, 2L, 3L)) AS isr,
  array(1 + p % 3, 1 + (p + 1) % 3, 1 + (p + 2) % 3) AS assigned_replicas, 2L AS min_insync_replicas,
  CAST(array() AS ARRAY<STRING>) AS truncations, 'first' AS run, 0L AS micro_batch_id
FROM (SELECT id AS p, explode(IF(id % {one_in} = 15, array(1L, 2L, 3L, 3L), array(1L, 2L, 3L))) AS r
  FROM range({partitions}));

-- made: findings
SELECT concat('cluster/topic/id/', p) AS topic_partition_id, 'cluster' AS cluster_id, CAST(NULL AS STRING) AS incident,
  'topic' AS topic, 'id' AS topic_id, p AS partition, sha1(CAST(p AS STRING)) AS finding_id, 'committed_records_survive' AS invariant,
  CAST(NULL AS STRING) AS kind, IF(p % {one_in} = 6, 'bad', 'critical') AS severity, concat('offsets ', p, ': lost') AS summary,
  transform(sequence(0, 3), i -> named_struct('event_id', md5(CAST(p * 4 + i AS STRING)), 'because', 'so')) AS witness,
  'first' AS run
FROM (SELECT id AS p, explode(IF(id % {one_in} = 5, array(1, 2), array(1))) FROM range({findings}));

-- made: verdicts
SELECT concat('cluster/topic/id/', p) AS topic_partition_id, 'cluster' AS cluster_id, CAST(NULL AS STRING) AS incident,
  'topic' AS topic, 'id' AS topic_id, p AS partition, 'committed_records_survive' AS invariant, 'VIOLATED' AS verdict,
  array(sha1(CAST(p AS STRING))) AS finding_ids
FROM (SELECT id AS p FROM range({findings})) WHERE p % {one_in} <> 4;

-- made: loss_ledger
SELECT concat('cluster/topic/id/', p) AS topic_partition_id, 'cluster' AS cluster_id, CAST(NULL AS STRING) AS incident,
  'topic' AS topic, 'id' AS topic_id, p AS partition, 10L AS first_offset, 20L AS end_offset, sha1(CAST(p AS STRING)) AS finding_id
FROM (SELECT id AS p FROM range({findings})) WHERE p % {one_in} NOT IN (3, 4);

-- made: replica_events
SELECT md5(CAST(id AS STRING)) AS event_id FROM range(4 * {findings}) WHERE id % (4 * {one_in}) <> 8;

-- by hand: replica_states
SELECT sum(twice) AS replicas_stand_once, sum(unsound) AS offsets_are_sound, sum(untiled) AS spans_tile,
  sum(falling) AS leader_epochs_rise_within_a_log, count_if(registrations <> 1) AS one_registration_per_partition,
  sum(below) AS isr_at_or_above_min_isr,
  (SELECT count_if(imbalance > 10) FROM (SELECT 100 * avg(IF(leader <> replica, 1, 0)) AS imbalance FROM replica_states
    WHERE replica = assigned_replicas[0] AND leader IS NOT NULL AND NOT stopped GROUP BY cluster_id, replica
    HAVING count(*) >= 10)) AS leader_imbalance,
  count_if(leader_end - follower_end > 10000) AS follower_lag
FROM (
  SELECT topic_partition_id, count(*) - count(DISTINCT replica) AS twice,
    count_if(log_start_offset < 0 OR high_watermark < 0 OR log_end_offset < log_start_offset) AS unsound,
    count_if(size(spans) > 0 AND coalesce(aggregate(spans, log_start_offset, (reached, s) ->
      IF(s.first_offset >= reached AND s.end_offset > s.first_offset, s.end_offset, NULL)) > log_end_offset, true)) AS untiled,
    count_if(size(spans) > 0 AND aggregate(spans, -1L, (h, s) ->
      IF(coalesce(s.leader_epoch, h) >= h, coalesce(s.leader_epoch, h), NULL)) IS NULL) AS falling,
    IF(min(xxhash64(leader, leader_epoch, isr, assigned_replicas, min_insync_replicas))
      = max(xxhash64(leader, leader_epoch, isr, assigned_replicas, min_insync_replicas)), 1, 2) AS registrations,
    count_if(replica = leader AND size(isr) < min_insync_replicas AND NOT stopped) AS below,
    max(log_end_offset) FILTER (WHERE replica = leader) AS leader_end,
    min(log_end_offset) FILTER (WHERE array_contains(isr, replica)) AS follower_end
  FROM replica_states GROUP BY topic_partition_id
);

-- by hand: findings
SELECT sum(times - 1) AS findings_stand_once, sum(unproven) AS findings_are_proofs,
  count_if(NOT used) AS findings_are_used, count_if(loss AND NOT in_ledger) AS loss_findings_have_ledger_rows,
  sum(unwitnessed) AS witnesses_are_stored
FROM (
  SELECT topic_partition_id, finding_id, sum(is_finding) AS times, sum(unproven) AS unproven, max(loss) AS loss,
    max(named) AS used, max(in_ledger) AS in_ledger, sum(unwitnessed) AS unwitnessed
  FROM (
    SELECT topic_partition_id, finding_id, 1 AS is_finding, IF(coalesce(invariant, kind) IS NULL OR size(witness) = 0
      OR severity NOT IN ('critical', 'warning', 'info'), 1, 0) AS unproven,
      invariant IN ('committed_records_survive', 'acknowledged_records_survive', 'consumed_records_survive') AS loss,
      false AS named, false AS in_ledger, 0 AS unwitnessed FROM findings
    UNION ALL SELECT topic_partition_id, explode(finding_ids), 0, 0, false, true, false, 0 FROM verdicts
    UNION ALL SELECT topic_partition_id, finding_id, 0, 0, false, true, true, 0 FROM loss_ledger
    UNION ALL SELECT w.topic_partition_id, w.finding_id, 0, 0, false, false, false, 1
      FROM (SELECT topic_partition_id, finding_id, explode(witness.event_id) AS event_id FROM findings) AS w
      LEFT ANTI JOIN replica_events AS e ON e.event_id = w.event_id
  ) GROUP BY topic_partition_id, finding_id HAVING sum(is_finding) > 0
);

-- Questions people ask, each with the SQL that answers it, over the tables and the documented views.
--   spark-submit --properties-file conf/spark-defaults.conf jobs/create_views.py --tables DIR --follow
--   spark-sql --properties-file conf/spark-defaults.conf --conf spark.sql.catalogImplementation=in-memory -i DIR/views.sql
--   SET spark.sql.cli.print.header=true;  -- there, for the names of columns
-- With --follow the views show the newest commits, as a dashboard wants them; without it they stand still at
-- the newest finished micro-batch, all tables at one cut.
-- Spark, DuckDB and deltalake answer them alike, after the views that create_views.py --text ENGINE prints;
-- deltalake in the words that create_views.py --text datafusion --questions prints. See docs/engines.md.
-- Columns called `at` are told with their table: the word alone is a keyword of DuckDB.
-- A question begins with `-- ?`; its statement ends with a semicolon.

-- ? What is broken, and where?
SELECT cluster_id, incident, topic, partition, invariant, reason
FROM verdicts WHERE verdict = 'VIOLATED' ORDER BY topic_partition_id, invariant;

-- ? Which records are lost, what were they worth, and why are they gone?
SELECT cluster_id, incident, topic, partition, first_offset, end_offset - 1 AS last_offset, records, tier, contract, status, cause
FROM lost_records ORDER BY topic_partition_id, first_offset;

-- ? When were they lost, and when had producers been told that they were written?
SELECT cluster_id, incident, topic, partition, first_offset, end_offset, lost_timestamp,
  first_acknowledged_timestamp, last_acknowledged_timestamp
FROM lost_records ORDER BY topic_partition_id, first_offset;

-- ? Which broker's step lost them, and which settings allowed it?
SELECT cluster_id, incident, topic, partition, first_offset, end_offset, cause, causes, lost_on, next_leader,
  next_leader_epoch, election_kind, allowed_by, copy_paths
FROM loss_ledger WHERE status <> 'recovered' ORDER BY topic_partition_id, first_offset, finding_id;

-- ? Which records were lost in the last hour before the newest event?
SELECT cluster_id, incident, topic, partition, first_offset, end_offset, tier, status, cause, lost_timestamp
FROM lost_records
WHERE unix_millis(lost_timestamp) > (SELECT max(newest_event_time) - 3600000 FROM _batches)
ORDER BY topic_partition_id, first_offset;

-- ? How many records are lost, by what was promised?
SELECT cluster_id, incident, tier, contract, status, sum(records) AS records
FROM lost_records GROUP BY ALL ORDER BY cluster_id, incident, tier, contract, status;

-- ? How many records has each topic lost, and in how many partitions?
SELECT cluster_id, incident, topic, status, contract, sum(records) AS records, count(DISTINCT partition) AS partitions
FROM lost_records GROUP BY ALL ORDER BY records DESC, cluster_id, incident, topic, status, contract;

-- ? What does each loss take for granted? Nothing, where the list is empty.
SELECT cluster_id, incident, topic, partition, first_offset, end_offset, assuming
FROM lost_records ORDER BY topic_partition_id, first_offset;

-- ? Which of them can still be recovered, from which broker, and what would destroy them?
SELECT cluster_id, incident, topic, partition, first_offset, end_offset, surviving_replicas, salvage_of, destroyed_when
FROM lost_records WHERE size(surviving_replicas) > 0 OR size(salvage_of) > 0 ORDER BY topic_partition_id, first_offset;

-- ? What is the proof of a finding, step by step, and where is it in the logs?
SELECT f.cluster_id, f.incident, f.finding_id, f.summary, t.sequence, t.what, t.because, t.source_path, t.source_line
FROM findings AS f JOIN incident_timeline AS t
  ON t.topic_partition_id = f.topic_partition_id AND array_contains(t.finding_ids, f.finding_id)
ORDER BY f.topic_partition_id, f.finding_id, t.sequence;

-- ? What happened to a partition, in causal order?
SELECT cluster_id, incident, topic, partition, sequence, t.at, what, finding_ids
FROM incident_timeline AS t ORDER BY topic_partition_id, sequence;

-- ? Which broker led when, and how was each leader elected?
SELECT cluster_id, incident, topic, partition, leader_epoch, leader, election_kind, observed_timestamp AS at
FROM current_leadership WHERE kind = 'leadership_recorded' AND election_kind IS NOT NULL
ORDER BY topic_partition_id, sequence;

-- ? Were there unclean elections, and what did they cost?
SELECT cluster_id, incident, topic, partition, u.at, leader, leader_epoch, election_kind, records_first_missing,
  records_lost_in_partition, finding_ids
FROM unclean_elections AS u ORDER BY topic_partition_id, sequence;

-- ? What did each replica hold just before each unclean election?
SELECT u.cluster_id, u.incident, u.topic, u.partition, u.sequence, r.replica, r.log_start_offset, r.log_end_offset, r.high_watermark, r.role, r.running
FROM unclean_elections AS u JOIN replica_at AS r
  ON r.topic_partition_id = u.topic_partition_id AND r.from_sequence < u.sequence
  AND (r.until_sequence >= u.sequence OR r.until_sequence IS NULL)
ORDER BY u.topic_partition_id, u.sequence, r.replica;

-- ? How did the high watermark of each replica go, step by step? In the order of from_sequence: clocks differ.
SELECT cluster_id, incident, topic, partition, replica, from_sequence, r.at, role, leader_epoch, high_watermark,
  log_end_offset
FROM replica_at AS r WHERE high_watermark IS NOT NULL ORDER BY topic_partition_id, replica, from_sequence;

-- ? Which partitions were under-replicated, for how long, and did they refuse writes?
SELECT cluster_id, incident, topic, partition, u.at, seconds, missing_replicas, below_min_isr, still
FROM under_replicated AS u ORDER BY seconds DESC, topic_partition_id, from_sequence;

-- ? What would the next failure cost?
SELECT cluster_id, incident, topic, partition, risk, first_offset, end_offset, replicas, destroyed_when, since
FROM next_failure ORDER BY risk, topic_partition_id, first_offset;

-- ? Which records were in danger, from when to when, and is it over?
SELECT cluster_id, incident, topic, partition, leader_epoch, first_offset, end_offset, records, tier, failures, cause,
  since_timestamp, until_timestamp, over, ends_when
FROM at_risk ORDER BY over, topic_partition_id, since, first_offset;

-- ? Which replicas differ, and at which offsets?
SELECT cluster_id, incident, topic, partition, replicas, first_offset, end_offset, status
FROM divergences ORDER BY topic_partition_id, first_offset;

-- ? What does each replica hold now, leader epoch by leader epoch?
SELECT cluster_id, incident, topic, partition, replica, leader_epoch, first_offset, end_offset
FROM replica_log_spans ORDER BY topic_partition_id, replica, first_offset;

-- ? Which logs were cut, and why?
SELECT cluster_id, incident, topic, partition, replica, cut.observed_at AS observed_at,
  cut.from_offset AS from_offset, cut.to_offset AS to_offset, cut.reason AS reason
FROM (
  SELECT topic_partition_id, cluster_id, incident, topic, partition, replica, explode(truncations) AS cut FROM replica_states
) ORDER BY topic_partition_id, cut.observed_at, replica;

-- ? What is not known, and which artefact would settle it?
SELECT cluster_id, incident, artefact, count(*) AS verdicts, count(DISTINCT topic_partition_id) AS partitions
FROM (
  SELECT topic_partition_id, cluster_id, incident, explode(settled_by) AS artefact FROM verdicts WHERE verdict = 'UNKNOWN'
) GROUP BY ALL ORDER BY verdicts DESC, cluster_id, incident, artefact;

-- ? Which verdicts take something for granted, and what? `replication-analyzer explain NAME` says what would show it.
SELECT cluster_id, incident, topic, partition, invariant, verdict, assuming
FROM verdicts WHERE size(assuming) > 0 ORDER BY topic_partition_id, invariant;

-- ? What was refused on the way in, and why?
SELECT cluster_id, incident, reason_code, origin, sum(rows) AS rows, min(reason) AS an_example
FROM quarantine GROUP BY ALL ORDER BY rows DESC, cluster_id, incident, reason_code, origin;

-- ? How much came in, and what became of it?
SELECT incident, run, rows_in, applied, duplicates, quarantined, held, superseded, not_yet_folded, findings, finished_timestamp
FROM event_totals ORDER BY incident, run;

-- ? Which runs have written these tables, when, and of which incident?
SELECT query, run, run_number, incident, min(finished_timestamp) AS first_finished, max(finished_timestamp) AS last_finished
FROM _batches GROUP BY ALL ORDER BY query, run_number;

-- ? How did the micro-batches go?
SELECT incident, run, query, micro_batch_id, finished_timestamp, rows_in, applied, duplicates, quarantined, held, superseded, findings, milliseconds
FROM _batches WHERE micro_batch_id >= 0 ORDER BY run_number, micro_batch_id, query;

-- ? Which expectations failed or were not judged at the last check?
SELECT cluster_ids, incidents, severity, suite, expectation, outcome, at_timestamp AS checked_at, failing, observed_value, at_most,
  slice(failing_rows, 1, 3) AS first_rows
FROM expectation_results AS r JOIN (
  SELECT suite AS last_suite, expectation AS last_expectation, max(e.at) AS last_at FROM expectation_results AS e GROUP BY ALL
) AS newest ON r.suite = last_suite AND r.expectation = last_expectation AND r.at = last_at
WHERE outcome <> 'passed'
ORDER BY severity, suite, expectation;

-- ? How did an expectation do from run to run?
SELECT cluster_ids, incidents, suite, expectation, at_timestamp AS checked_at, outcome, observed_value,
  observed_value - lag(observed_value) OVER (PARTITION BY suite, expectation ORDER BY r.at) AS change
FROM expectation_results AS r ORDER BY suite, expectation, r.at;

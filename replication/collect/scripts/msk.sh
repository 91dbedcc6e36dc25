#!/usr/bin/env bash
# Collects what an incident left of a cluster of Amazon MSK. Run it where the AWS command line may read
# the brokers' logs, and where a client of the cluster runs (kafka-topics).
#
# MSK has no disks that its customers can read, and no metadata log. What that costs: no copy of a lost
# record can be found, so `recover` has nothing; nothing shows what a disk lost or whom the controller
# elected, so verdicts take for granted that disks keep what they have (disks_keep) and that leaders
# were in sync and are all named (leaders_were_in_sync, elections_as_recorded); more causes are unknown.
# Without a log of what producers were told, losses of records acknowledged with acks=1 do not show at
# all: it counts for most here.
#
# Order: the brokers' logs, as long as their destination keeps them; what the cluster says now. Size:
# megabytes to a few gigabytes. Broker logs exist only where the cluster was told to deliver them
# (LoggingInfo) before the incident: to CloudWatch, S3 or Firehose, at INFO. What Firehose delivered lies
# where its stream leads: copy that by hand.
set -uo pipefail

# Settings: each may be set in the environment.
OUT=${OUT:-evidence}
CLUSTER_ARN=${CLUSTER_ARN:-} # aws kafka list-clusters-v2
LOG_GROUP=${LOG_GROUP:-}     # of CloudWatch
S3_LOGS=${S3_LOGS:-}         # s3://bucket/prefix, where they are delivered there
SINCE=${SINCE:-}             # the first moment wanted, in UTC: 2026-11-20T00:00:00
UNTIL=${UNTIL:-}
KAFKA_BIN=${KAFKA_BIN:-/opt/kafka/bin} # holds kafka-topics (or kafka-topics.sh) on this machine
BOOTSTRAP=${BOOTSTRAP:-}           # aws kafka get-bootstrap-brokers
COMMAND_CONFIG=${COMMAND_CONFIG:-} # a file of client settings (IAM, SCRAM or TLS)

# <common>
milliseconds() { python3 -c 'import calendar, sys, time; print(calendar.timegm(time.strptime(sys.argv[1], "%Y-%m-%dT%H:%M:%S")) * 1000)' "$1"; }

# A file for each stream, which is one of one broker: its lines as the broker printed them.
cloudwatch() {
  local streams stream
  streams=$(aws logs describe-log-streams --log-group-name "$LOG_GROUP" --query 'logStreams[].logStreamName' --output text | tr '\t' '\n')
  if [ -z "$streams" ]; then failed "no log stream in $LOG_GROUP"; fi
  while IFS= read -r stream; do
    [ -n "$stream" ] || continue
    if [ "$MODE" = sizes ]; then
      say "$stream of $LOG_GROUP"
      continue
    fi
    keep "broker-logs/$(printf '%s' "$stream" | tr -c 'A-Za-z0-9._-' '_').log" lines_of "$stream"
  done <<END
$streams
END
}

lines_of() {
  set -- --log-group-name "$LOG_GROUP" --log-stream-names "$1"
  if [ -n "$SINCE" ]; then set -- "$@" --start-time "$(milliseconds "$SINCE")"; fi
  if [ -n "$UNTIL" ]; then set -- "$@" --end-time "$(milliseconds "$UNTIL")"; fi
  aws logs filter-log-events "$@" --output json | python3 -c 'import json, sys
for event in json.load(sys.stdin)["events"]: print(event["message"])'
}

bucket() {
  if [ "$MODE" = sizes ]; then
    aws s3 ls --recursive --summarize "$S3_LOGS" | tail -n 2 >&2
    return
  fi
  say "+ aws s3 sync $S3_LOGS $INTO/broker-logs"
  aws s3 sync "$S3_LOGS" "$INTO/broker-logs" >&2 || failed "$S3_LOGS"
}

kafka_tool() {
  local name=$1
  shift
  if [ -x "$KAFKA_BIN/$name.sh" ]; then name="$name.sh"; fi
  if [ -n "$COMMAND_CONFIG" ]; then set -- --command-config "$COMMAND_CONFIG" "$@"; fi
  "$KAFKA_BIN/$name" --bootstrap-server "$BOOTSTRAP" "$@"
}

begin "${1:-}"
if [ -n "$CLUSTER_ARN" ]; then
  say "Where the brokers' logs are delivered:"
  aws kafka describe-cluster-v2 --cluster-arn "$CLUSTER_ARN" --query 'ClusterInfo.Provisioned.LoggingInfo' >&2 || failed "$CLUSTER_ARN"
fi
if [ -n "$LOG_GROUP" ]; then cloudwatch; fi
if [ -n "$S3_LOGS" ]; then bucket; fi
if [ -z "$LOG_GROUP$S3_LOGS" ]; then failed "the brokers' logs: set LOG_GROUP or S3_LOGS"; fi
if [ -z "$BOOTSTRAP" ]; then
  failed "what the cluster says now: set BOOTSTRAP"
elif [ "$MODE" = collect ]; then
  keep describe.txt kafka_tool kafka-topics --describe
  keep log-dirs.txt kafka_tool kafka-log-dirs --describe
fi
finish

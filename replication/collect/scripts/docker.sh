#!/usr/bin/env bash
# Collects what an incident left of brokers in Docker containers of this machine, stopped ones too.
# Run it on every machine that has such containers, and put the folders below one.
#
# Order: the containers' output, which `docker rm` and log rotation remove; what the cluster says now;
# the disks. Size: output has megabytes to a few gigabytes; a copy of a disk is all of it (COPY=none
# leaves it out). A disk decides most after a clean stop of its broker: where you may `docker stop -t 300`
# it, do, then run this once more: a stopped container is read as well.
set -uo pipefail

# Settings: each may be set in the environment.
OUT=${OUT:-evidence-$(hostname)}
CONTAINERS=${CONTAINERS:-}                # names, separated by spaces: docker ps -a --format '{{.Names}} {{.Image}}'
DATA_DIR=${DATA_DIR:-/var/lib/kafka/data} # log.dirs within the container; a volume is mounted there
LOG_DIR=${LOG_DIR:-/opt/kafka/logs}       # server.log within the container, where its image writes files
KAFKA_BIN=${KAFKA_BIN:-/opt/kafka/bin}    # holds kafka-topics (or kafka-topics.sh) within the container
BOOTSTRAP=${BOOTSTRAP:-localhost:9092}    # as seen from within the container
COPY=${COPY:-whole}                       # whole or none

# <common>
COPIES='whole none'
# The tools in that container, with or without `.sh`.
kafka_tool() {
  local container=$1 name=$2
  shift 2
  docker exec "$container" sh -c 't=$1; shift; [ -x "$t" ] || t=$t.sh; exec "$t" "$@"' sh "$KAFKA_BIN/$name" --bootstrap-server "$BOOTSTRAP" "$@"
}

output() { docker logs --timestamps "$1" 2>&1; }

# What a container that is stopped has is read with docker cp, which needs no shell in it.
size_of() { docker cp "$1:$2" - 2>/dev/null | wc -c | awk '{ print int($1 / 1024) }'; }

one() {
  local container=$1 asked=$2 size
  if ! docker inspect "$container" >/dev/null 2>&1; then
    failed "$container: no such container here: docker ps -a lists them"
    return
  fi
  if [ "$MODE" = sizes ]; then
    say "$container: $(output "$container" | wc -c) bytes of output, $(size_of "$container" "$DATA_DIR") KiB in $DATA_DIR"
    return
  fi
  keep "$container/output.log" output "$container"
  if [ -n "$asked" ]; then
    keep describe.txt kafka_tool "$container" kafka-topics --describe
    keep metadata-quorum.txt kafka_tool "$container" kafka-metadata-quorum describe --status
    keep log-dirs.txt kafka_tool "$container" kafka-log-dirs --describe
  fi
  if docker cp "$container:$LOG_DIR" - >/dev/null 2>&1; then
    keep "$container/logs.tar" docker cp "$container:$LOG_DIR" -
  fi
  if [ "$COPY" = none ]; then
    left_out "$container:$DATA_DIR"
    return
  fi
  size=$(size_of "$container" "$DATA_DIR")
  if room "$size" "$container:$DATA_DIR" ", or COPY=none"; then
    keep "$container/disk.tar" docker cp "$container:$DATA_DIR" -
  fi
}

begin "${1:-}"
if [ -z "$CONTAINERS" ]; then failed "no CONTAINERS: name them (docker ps -a)"; fi
# The first container that runs is asked for what the cluster says.
FIRST=
for container in $CONTAINERS; do
  if [ -z "$FIRST" ] && [ "$(docker inspect -f '{{.State.Running}}' "$container" 2>/dev/null)" = true ]; then
    FIRST=$container
  fi
done
for container in $CONTAINERS; do
  if [ "$container" = "$FIRST" ]; then one "$container" ask; else one "$container" ""; fi
done
finish

#!/usr/bin/env bash
# Collects what an incident left of brokers in Docker containers of this machine, stopped ones too.
# Run it on every machine that has such containers, and put the folders below one.
#
# Order: the containers' output, which `docker rm` and log rotation remove (max-size and max-file of the
# log driver bound what there is); what the cluster says now; the disks. Size: output has megabytes to a
# few gigabytes; a copy of a disk is all of it (COPY=none leaves it out; for a digest of a large one run
# `collect --for bare-metal` on the volume's folder: docker inspect, Mounts). A disk decides most after a
# clean stop of its broker: where you may `docker stop -t 300` it, do, then run this once more: a stopped
# container is read as well. Kafka's tools run one after the other within the memory limit of a broker's
# container, each with the heap TOOL_HEAP.
set -uo pipefail

# Settings: each may be set in the environment.
OUT=${OUT:-evidence-$(hostname)}
CONTAINERS=${CONTAINERS:-}                # names, separated by spaces: docker ps -a --format '{{.Names}} {{.Image}}'
DATA_DIR=${DATA_DIR:-/var/lib/kafka/data} # log.dirs within the container; a volume is mounted there
LOG_DIR=${LOG_DIR:-/opt/kafka/logs}       # server.log within the container, where its image writes files
ZOOKEEPERS=${ZOOKEEPERS:-}                # names of containers that run ZooKeeper
ZOOKEEPER_DATA=${ZOOKEEPER_DATA:-/var/lib/zookeeper} # holds version-2, or folders that hold it
KAFKA_BIN=${KAFKA_BIN:-/opt/kafka/bin}    # holds kafka-topics (or kafka-topics.sh) within the container
BOOTSTRAP=${BOOTSTRAP:-localhost:9092}    # as seen from within the container
COMMAND_CONFIG=${COMMAND_CONFIG:-} # a file of client settings here, where the cluster asks for a password; paths in it are the container's
TOOL_HEAP=${TOOL_HEAP:--Xmx256m}   # of Kafka's tools; some 10,000 topic partitions need more
TOOL_OPTS=${TOOL_OPTS:-}           # Java options of the tools (Kerberos, JAAS); the broker's KAFKA_OPTS has its agents
COPY=${COPY:-whole}                # whole or none

# <common>
COPIES='whole none'
# <in-containers>
inside() {
  local container=$1
  shift
  docker exec -i "$container" "$@" <"${INPUT:-/dev/null}"
}

output() { docker logs --timestamps "$1" 2>&1; }

# What a container that is stopped has is read with docker cp, which needs no shell in it: that reads all
# of it only to count.
size_of() {
  local size
  size=$(inside "$1" du -sk "$2" 2>/dev/null | cut -f 1)
  if [ -n "$size" ]; then echo "$size"; else docker cp "$1:$2" - 2>/dev/null | wc -c | awk '{ print int($1 / 1024) }'; fi
}

is_there() {
  local told
  if told=$(docker inspect "$1" 2>&1); then return 0; fi
  failed "$1: $(printf '%s\n' "$told" | last_words). docker ps -a lists the containers that are here"
  return 1
}

outputs() {
  local container=$1 dir=$2
  if [ "$MODE" = sizes ]; then
    say "$container: $(output "$container" | wc -c) bytes of output, $(size_of "$container" "$dir") KiB in $dir"
  else
    keep "$container/output.log" output "$container"
  fi
}

# copy CONTAINER FOLDER FILE: the folder as a tar.
copy() {
  local size
  size=$(size_of "$1" "$2")
  if room "$size" "$1:$2" ", or COPY=none" && ! take "$1/$3" docker cp "$1:$2" -; then
    failed "$1:$2 cannot be read: $CAUSE. Set DATA_DIR to log.dirs (of ZooKeeper: ZOOKEEPER_DATA to dataDir) as the container sees it"
  fi
}

files_of() {
  local container=$1
  if ! take "$container/logs.tar" docker cp "$container:$LOG_DIR" -; then
    case "$CAUSE" in
    *"Could not find the file"* | *"No such container:path"* | *"no such file"*) ;; # Its image logs to the output alone.
    *) failed "$container:$LOG_DIR (exit status $STATUS): $CAUSE" ;;
    esac
  fi
  if [ "$COPY" = none ]; then left_out "$container:$DATA_DIR"; else copy "$container" "$DATA_DIR" disk.tar; fi
}

begin "${1:-}"
if [ -z "$CONTAINERS" ]; then failed "no CONTAINERS: name them (docker ps -a)"; fi
ASKED=
for container in $CONTAINERS; do
  if is_there "$container"; then
    outputs "$container" "$DATA_DIR"
    ASKED="$ASKED $container"
  fi
done
HERE=$ASKED
if [ "$MODE" = collect ] && [ -n "$ASKED" ]; then tools; fi
for container in $ZOOKEEPERS; do
  if is_there "$container"; then
    outputs "$container" "$ZOOKEEPER_DATA"
    if [ "$MODE" = collect ]; then copy "$container" "$ZOOKEEPER_DATA" zookeeper.tar; fi
  fi
done
if [ "$MODE" = collect ]; then
  for container in $HERE; do files_of "$container"; done
fi
finish

#!/usr/bin/env bash
# Collects what an incident left on one machine where systemd runs the broker. Run it on the machine
# of every broker and controller, as a user who may read Kafka's files and the journal (group
# systemd-journal), and put the folders below one.
#
# Order: the journal, which loses its oldest lines first; what the cluster says now; the brokers' logs;
# the disks. Size: a journal has megabytes to a few gigabytes; a digest of a disk is about a thousandth
# of it; a copy of a disk is all of it. A disk decides most after a clean stop of its broker: where you
# may stop the unit, stop it, then run this once more: each run has a folder of its own below OUT.
set -uo pipefail

# Settings: each may be set in the environment.
OUT=${OUT:-evidence-$(hostname)}
UNIT=${UNIT:-kafka}                            # as `systemctl list-units` names it
SINCE=${SINCE:-7 days ago}                     # a day before the first sign of the incident
CONFIG=${CONFIG:-/etc/kafka/server.properties} # ExecStart of the unit names it: systemctl cat $UNIT
DATA_DIRS=${DATA_DIRS:-}                       # where empty: log.dirs and metadata.log.dir of CONFIG
BROKER_LOGS=${BROKER_LOGS:-/var/log/kafka}     # server.log, controller.log, state-change.log
ZOOKEEPER_DATA=${ZOOKEEPER_DATA:-}             # the folder that holds version-2, where ZooKeeper runs here
KAFKA_BIN=${KAFKA_BIN:-/opt/kafka/bin}         # holds kafka-topics (or kafka-topics.sh)
BOOTSTRAP=${BOOTSTRAP:-localhost:9092}         # any broker that runs
COMMAND_CONFIG=${COMMAND_CONFIG:-} # a file of client settings, where the cluster asks for a password
COPY=${COPY:-digest}               # digest: headers of records only; whole: with the records; none
DIGEST=${DIGEST:-./digest.py}      # copied here from DIGEST_OF_TOOL, by scp or as you like
DIGEST_OF_TOOL=@digest@            # where the tool is that printed this script

# <common>
# <on-disk>
# One moment and one zone for every line; where Kafka logs to files alone, the journal has few lines.
journal() {
  if [ "$MODE" = sizes ]; then
    say "$(journalctl -u "$UNIT" --since "$SINCE" -o short-iso --no-pager | wc -c) bytes in the journal of $UNIT"
    return
  fi
  keep journal.txt journalctl -u "$UNIT" --since "$SINCE" -o short-iso --utc --no-pager
}

begin "${1:-}"
journal
tools
broker_logs
zookeeper
disks
finish

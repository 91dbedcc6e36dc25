#!/usr/bin/env bash
# Collects what an incident left on one broker's machine. Run it on the machine of every broker and
# controller, as a user who may read Kafka's files, and put the folders below one.
#
# Order: what the cluster says now, what rotates away (the brokers' logs), what stays (the disks).
# Size: logs are megabytes to a few gigabytes; a digest of a disk is about a thousandth of it; a copy
# of a disk is all of it. A disk decides most after a clean stop of its broker: where you may stop the
# broker, stop it, then run this once more: each run has a folder of its own below OUT.
set -uo pipefail

# Settings: each may be set in the environment.
OUT=${OUT:-evidence-$(hostname)}
CONFIG=${CONFIG:-/etc/kafka/server.properties} # its log.dirs are read
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
begin "${1:-}"
tools
broker_logs
zookeeper
disks
finish

#!/usr/bin/env bash
# Collects what an incident left of a Kafka cluster that Confluent for Kubernetes runs. Run it where
# kubectl reaches the cluster; it needs the rights get pods, get pods/log and create pods/exec in that
# namespace.
#
# Order: the pods' output, of which Kubernetes keeps one earlier run at most; what the cluster says now;
# the disks. Size: output has megabytes to a few gigabytes; a copy of a disk is all of it (COPY=none
# leaves it out) and travels through the API server: for large disks take a snapshot of the volumes
# (VolumeSnapshot), mount it elsewhere, and run `collect --for bare-metal` there. A disk decides most
# after a clean stop of its broker; the pod's own deletion is a clean stop where it ends in its time.
set -uo pipefail

# Settings: each may be set in the environment.
OUT=${OUT:-evidence}
NAMESPACE=${NAMESPACE:-confluent}
# A selector for each kind of pod, separated by spaces. With ZooKeeper: app=kafka app=zookeeper
SELECTORS=${SELECTORS:-app=kafka app=kraftcontroller}
CONTAINER=${CONTAINER:-}               # where empty: the first of each pod
DATA_DIR=${DATA_DIR:-/mnt/data/data0}  # holds logs, of brokers and of KRaft controllers
KAFKA_BIN=${KAFKA_BIN:-/usr/bin}       # holds kafka-topics in the image
SUFFIX=${SUFFIX-}                      # of Kafka's tools in the image
BOOTSTRAP=${BOOTSTRAP:-localhost:9071} # the internal listener, as seen from within the pod
COPY=${COPY:-whole}                    # whole or none

# <common>
# <in-pods>
begin "${1:-}"
all_pods
finish

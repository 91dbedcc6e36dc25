#!/usr/bin/env bash
# Collects what an incident left of a Kafka cluster that Strimzi runs. Run it where kubectl reaches the
# cluster; it needs the rights get pods, get pods/log and create pods/exec in that namespace.
#
# Order: the pods' output, of which Kubernetes keeps one earlier run at most; what the cluster says now;
# the disks. Size: output has megabytes to a few gigabytes; a copy of a disk is all of it (COPY=none
# leaves it out) and travels through the API server: for large disks take a snapshot of the volumes
# (VolumeSnapshot), mount it elsewhere, and run `collect --for bare-metal` there. A disk decides most
# after a clean stop of its broker; the pod's own deletion is a clean stop where it ends in its time.
set -uo pipefail

# Settings: each may be set in the environment.
OUT=${OUT:-evidence}
NAMESPACE=${NAMESPACE:-kafka}
CLUSTER=${CLUSTER:-my-cluster} # kubectl get kafka -A
SELECTORS=${SELECTORS:-strimzi.io/cluster=$CLUSTER,strimzi.io/name=$CLUSTER-kafka}
CONTAINER=${CONTAINER:-kafka}
DATA_DIR=${DATA_DIR:-/var/lib/kafka} # holds data or data-0, data-1 .. with kafka-logN in each
KAFKA_BIN=${KAFKA_BIN:-/opt/kafka/bin} # holds kafka-topics.sh in the image
SUFFIX=${SUFFIX-.sh}                   # of Kafka's tools in the image
BOOTSTRAP=${BOOTSTRAP:-localhost:9092} # a listener without a password, as seen from within the pod
COPY=${COPY:-whole}                    # whole or none

# <common>
# <in-pods>
begin "${1:-}"
all_pods
finish

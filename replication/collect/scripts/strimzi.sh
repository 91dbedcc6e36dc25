#!/usr/bin/env bash
# Collects what an incident left of a Kafka cluster that Strimzi runs. Run it where kubectl reaches the
# cluster; it needs the rights get pods, get pods/log and create pods/exec in that namespace.
#
# Order: the pods' output, which the kubelet of each node rotates; what the cluster says now; the disks.
# `kubectl logs` gives the newest of the rotated files (10 MiB where the kubelet sets nothing else,
# containerLogMaxSize) and one earlier run (--previous). The older files lie on the pod's node in
# /var/log/pods, as long as the pod is not deleted, and in the store of your log shipper: copy them by
# hand into the pod's folder below OUT.
# Size: output has megabytes; a copy of a disk is all of it (COPY=none leaves it out) and travels through
# the API server. For large disks: COPY=digest where the image has python3, or a pod of your own that
# mounts the claim or a snapshot of it (docs/evidence.md, Disks of pods). A disk decides most after a
# clean stop of its broker; the pod's own deletion is a clean stop where it ends in its time. Run this
# once more then: each run has a folder of its own below OUT.
# Kafka's tools run one after the other in a broker's pod, within its memory limit, each with the heap
# TOOL_HEAP and none of the options of the broker's own Java.
set -uo pipefail

# Settings: each may be set in the environment.
OUT=${OUT:-evidence}
NAMESPACE=${NAMESPACE:-kafka}
CLUSTER=${CLUSTER:-my-cluster} # kubectl get kafka -A
SELECTORS=${SELECTORS:-strimzi.io/cluster=$CLUSTER,strimzi.io/name=$CLUSTER-kafka}
ASK=${ASK:-$SELECTORS,strimzi.io/broker-role!=false} # who can say what the cluster knows: not a controller alone
ZOOKEEPERS=${ZOOKEEPERS:-strimzi.io/cluster=$CLUSTER,strimzi.io/name=$CLUSTER-zookeeper} # before Strimzi 0.46
CONTAINER=${CONTAINER:-kafka}
ZOOKEEPER_CONTAINER=${ZOOKEEPER_CONTAINER:-zookeeper}
ZOOKEEPER_DATA=${ZOOKEEPER_DATA:-/var/lib/zookeeper} # a folder below it holds version-2
DATA_DIR=${DATA_DIR:-/var/lib/kafka} # holds data or data-0, data-1 .. with kafka-logN in each
KAFKA_BIN=${KAFKA_BIN:-/opt/kafka/bin} # holds kafka-topics.sh in the image
BOOTSTRAP=${BOOTSTRAP:-localhost:9092} # a listener without a password, as seen from within the pod
COMMAND_CONFIG=${COMMAND_CONFIG:-} # a file of client settings here, where BOOTSTRAP asks for a password; paths in it are the pod's
TOOL_HEAP=${TOOL_HEAP:--Xmx256m}   # of Kafka's tools; some 10,000 topic partitions need more
TOOL_OPTS=${TOOL_OPTS:-}           # Java options of the tools (Kerberos, JAAS); the broker's KAFKA_OPTS has its agents
COPY=${COPY:-whole}                # whole; digest: headers of records only, by python3 in the pod; none
DIGEST=${DIGEST:-./digest.py}      # copied here from DIGEST_OF_TOOL
DIGEST_OF_TOOL=@digest@            # where the tool is that printed this script

# <common>
# <in-containers>
# <in-pods>
begin "${1:-}"
all_pods
finish

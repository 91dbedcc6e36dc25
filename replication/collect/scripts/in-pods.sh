COPIES='whole digest none'

# inside POD COMMAND..: within the pod's container; the command reads the file INPUT.
inside() {
  local pod=$1
  shift
  if [ -n "$CONTAINER" ]; then set -- -c "$CONTAINER" -- "$@"; else set -- -- "$@"; fi
  kubectl -n "$NAMESPACE" exec "$pod" -i "$@" <"${INPUT:-/dev/null}"
}

output() {
  local pod=$1
  shift
  if [ -n "$CONTAINER" ]; then set -- "$@" -c "$CONTAINER"; fi
  kubectl -n "$NAMESPACE" logs "$pod" --timestamps "$@"
}

# find_pods SELECTORS: their names, in FOUND; 1 where kubectl does not tell them.
find_pods() {
  local selector told all='' status=0
  for selector in $1; do
    if told=$(kubectl -n "$NAMESPACE" get pods -l "$selector" --ignore-not-found -o name 2>&1); then
      all="$all$told
"
    else
      failed "the pods of $selector in $NAMESPACE: $(printf '%s\n' "$told" | last_words)"
      status=1
    fi
  done
  FOUND=$(printf '%s' "$all" | sed -n 's|^pod/||p' | sort -u)
  return "$status"
}

# measure POD: SIZE of its DATA_DIR in KiB, empty where CAUSE says why it cannot be read.
measure() {
  local told
  told=$(inside "$1" du -sk "$DATA_DIR" 2>&1)
  SIZE=$(printf '%s\n' "$told" | sed -n 's/^\([0-9][0-9]*\)[[:space:]].*/\1/p' | tail -n 1)
  CAUSE=$(printf '%s\n' "$told" | last_words)
}

cannot_be_read() {
  local pod=$1 claims
  case "$CAUSE" in
  *"No such file"*)
    failed "$pod:$DATA_DIR cannot be read: $CAUSE. Set DATA_DIR to log.dirs (of ZooKeeper: ZOOKEEPER_DATA to dataDir) as the pod sees it"
    return
    ;;
  esac
  claims=$(kubectl -n "$NAMESPACE" get pod "$pod" -o 'jsonpath={.spec.volumes[*].persistentVolumeClaim.claimName}' 2>/dev/null)
  failed "$pod:$DATA_DIR cannot be read: $CAUSE. Where the pod is down, its disk is there all the same: mount its PersistentVolumeClaim (${claims:-kubectl get pvc}), or a snapshot of it, in a pod of your own and copy it from there: docs/evidence.md, Disks of pods"
}

outputs() {
  local pod=$1
  if [ "$MODE" = sizes ]; then
    measure "$pod"
    say "$pod: $(output "$pod" | wc -c) bytes of output, ${SIZE:-$CAUSE: an unknown number of} KiB in $DATA_DIR"
    return
  fi
  keep "$pod/output.log" output "$pod"
  if take "$pod/output-before-restart.log" output "$pod" --previous; then return; fi
  case "$CAUSE" in
  *"previous terminated container"*"not found"*) ;; # It was never started anew.
  *) failed "$INTO/$pod/output-before-restart.log (exit status $STATUS): $CAUSE" ;;
  esac
}

whole_disk() {
  local pod=$1 file=$2
  measure "$pod"
  if [ -z "$SIZE" ]; then
    cannot_be_read "$pod"
  elif room "$SIZE" "$pod:$DATA_DIR" ", or COPY=none"; then
    keep "$pod/$file" inside "$pod" tar -C "$DATA_DIR" -cf - .
  fi
}

disk() {
  local pod=$1
  case "$COPY" in
  none) left_out "$pod:$DATA_DIR" ;;
  digest) digests "$pod" ;;
  whole) whole_disk "$pod" disk.tar ;;
  esac
}

# digest.py goes in as standard input and its answer comes back: nothing is written in the pod.
digests() {
  local pod=$1 told dir number=0
  if [ ! -f "$DIGEST" ]; then
    failed "$pod:$DATA_DIR: there is no $DIGEST. Copy it here: where the tool is, it is $DIGEST_OF_TOOL. Or set COPY=whole"
    return
  fi
  # shellcheck disable=SC2016 # expanded within the pod
  if ! told=$(inside "$pod" sh -c 'ls -d "$1" >/dev/null && for d in "$1" "$1"/* "$1"/*/*; do if [ -f "$d/meta.properties" ]; then echo "log.dir=$d"; fi; done' sh "$DATA_DIR" 2>&1); then
    CAUSE=$(printf '%s\n' "$told" | last_words)
    cannot_be_read "$pod"
    return
  fi
  told=$(printf '%s\n' "$told" | sed -n 's/^log\.dir=//p')
  if [ -z "$told" ]; then failed "$pod:$DATA_DIR holds no log directory: set DATA_DIR to log.dirs as the pod sees it"; fi
  for dir in $told; do
    number=$((number + 1))
    if ! INPUT=$DIGEST take "$pod/disk-$number.digest.jsonl.gz" inside "$pod" python3 - "$dir" --out -; then
      failed "$INTO/$pod/disk-$number.digest.jsonl.gz (exit status $STATUS): $CAUSE. Where the image has no python3, read the disk in a pod of your own that has it: docs/evidence.md, Disks of pods. Or set COPY=whole"
    fi
  done
}

all_pods() {
  local brokers zookeepers pod
  if ! find_pods "$SELECTORS" && [ -z "$FOUND" ]; then return; fi
  brokers=$FOUND
  if [ -z "$brokers" ]; then
    failed "no pod of $SELECTORS in $NAMESPACE: set NAMESPACE and SELECTORS (kubectl get pods --show-labels)"
    return
  fi
  find_pods "$ZOOKEEPERS"
  zookeepers=$FOUND
  for pod in $brokers; do outputs "$pod"; done
  for pod in $zookeepers; do CONTAINER=$ZOOKEEPER_CONTAINER DATA_DIR=$ZOOKEEPER_DATA outputs "$pod"; done
  if [ "$MODE" = sizes ]; then return; fi
  find_pods "$ASK"
  ASKED=${FOUND:-$brokers}
  tools
  for pod in $zookeepers; do CONTAINER=$ZOOKEEPER_CONTAINER DATA_DIR=$ZOOKEEPER_DATA whole_disk "$pod" zookeeper.tar; done
  for pod in $brokers; do disk "$pod"; done
}

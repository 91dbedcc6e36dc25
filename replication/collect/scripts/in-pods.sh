COPIES='whole none'

in_pod() {
  local pod=$1
  shift
  if [ -n "$CONTAINER" ]; then
    kubectl -n "$NAMESPACE" exec "$pod" -c "$CONTAINER" -- "$@"
  else
    kubectl -n "$NAMESPACE" exec "$pod" -- "$@"
  fi
}

output() {
  local pod=$1
  shift
  if [ -n "$CONTAINER" ]; then set -- "$@" -c "$CONTAINER"; fi
  kubectl -n "$NAMESPACE" logs "$pod" --timestamps "$@"
}

size_of() { in_pod "$1" du -sk "$DATA_DIR" 2>/dev/null | cut -f 1; }

pods() {
  local selector
  for selector in $SELECTORS; do
    kubectl -n "$NAMESPACE" get pods -l "$selector" -o name
  done | sed 's|^pod/||' | sort -u
}

tools() {
  keep describe.txt in_pod "$1" "$KAFKA_BIN/kafka-topics$SUFFIX" --bootstrap-server "$BOOTSTRAP" --describe
  keep metadata-quorum.txt in_pod "$1" "$KAFKA_BIN/kafka-metadata-quorum$SUFFIX" --bootstrap-server "$BOOTSTRAP" describe --status
  keep log-dirs.txt in_pod "$1" "$KAFKA_BIN/kafka-log-dirs$SUFFIX" --bootstrap-server "$BOOTSTRAP" --describe
}

one() {
  local pod=$1 size
  size=$(size_of "$pod")
  say "$pod: $(output "$pod" 2>/dev/null | wc -c) bytes of output, ${size:-an unknown number of} KiB in $DATA_DIR"
  if [ "$MODE" = sizes ]; then return; fi
  keep "$pod/output.log" output "$pod"
  if output "$pod" --previous >/dev/null 2>&1; then
    keep "$pod/output-before-restart.log" output "$pod" --previous
  fi
}

disk() {
  local pod=$1 size
  if [ "$COPY" = none ]; then
    left_out "$pod:$DATA_DIR"
    return
  fi
  size=$(size_of "$pod")
  if [ -z "$size" ]; then
    failed "$pod:$DATA_DIR cannot be read: set DATA_DIR to log.dirs as the pod sees it"
  elif room "$size" "$pod:$DATA_DIR" ", or COPY=none"; then
    keep "$pod/disk.tar" in_pod "$pod" tar -C "$DATA_DIR" -cf - .
  fi
}

all_pods() {
  local found pod
  found=$(pods)
  if [ -z "$found" ]; then
    failed "no pod of $SELECTORS in $NAMESPACE: set NAMESPACE and SELECTORS (kubectl get pods --show-labels)"
    return
  fi
  for pod in $found; do one "$pod"; done
  if [ "$MODE" = sizes ]; then return; fi
  # Any pod that answers is asked; the first in order is.
  tools "$(printf '%s\n' "$found" | head -n 1)"
  for pod in $found; do disk "$pod"; done
}

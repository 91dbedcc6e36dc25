# kafka_tool NAME TOOL WORDS..: one of Kafka's tools, with or without `.sh`, within a container. It gets
# a heap of its own and nothing else that the container's settings give to the broker's Java: not its
# heap, agents, JMX port or log files. COMMAND_CONFIG goes in as the tool's standard input, and is written
# nowhere there.
kafka_tool() {
  local where=$1 name=$2
  shift 2
  if [ -n "$COMMAND_CONFIG" ]; then set -- --command-config /dev/stdin "$@"; fi
  # shellcheck disable=SC2016 # expanded within the container
  INPUT=${COMMAND_CONFIG:-/dev/null} inside "$where" \
    env KAFKA_HEAP_OPTS="$TOOL_HEAP" KAFKA_OPTS="$TOOL_OPTS" JMX_PORT= KAFKA_JMX_OPTS= KAFKA_JVM_PERFORMANCE_OPTS= \
    KAFKA_LOG4J_OPTS= KAFKA_GC_LOG_OPTS= JAVA_TOOL_OPTIONS= JDK_JAVA_OPTIONS= \
    sh -c 't=$1; shift; [ -x "$t" ] || t=$t.sh; cat | "$t" "$@"' sh "$KAFKA_BIN/$name" --bootstrap-server "$BOOTSTRAP" "$@"
}

# ask FILE TOOL WORDS..: what the cluster says, told by the first of $ASKED that answers. Whoever has
# answered is asked from then on; where nobody has, nobody is asked again.
ANSWERED=
ask() {
  local file=$1 each causes=
  shift
  for each in ${ANSWERED:-$ASKED}; do
    if take "$file" kafka_tool "$each" "$@"; then
      ANSWERED=$each
      return
    fi
    causes="$causes; $each (exit status $STATUS): $CAUSE"
    say "  $each does not answer: $CAUSE"
  done
  if [ -z "$causes" ]; then
    failed "$INTO/$file: nobody is left to be asked, since nobody answered before"
  else
    failed "$INTO/$file: nobody answers$causes"
    without_tool "$STATUS" "$1"
  fi
  if [ -z "$ANSWERED" ]; then ASKED=; fi
}

tools() {
  ask describe.txt kafka-topics --describe
  ask metadata-quorum.txt kafka-metadata-quorum describe --status
  ask log-dirs.txt kafka-log-dirs --describe
}

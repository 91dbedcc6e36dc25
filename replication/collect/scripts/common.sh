# ---- The same for every platform ----------------------------------------------------------------
# `sizes` prints what would be taken and how large it is; `collect` takes it. Nothing on a broker is
# changed, nothing is stopped. What cannot be had is said, and the rest is taken all the same.
say() { printf '%s\n' "$*" >&2; }

FAILED=0
MODE=
WHERE_TOOLS_ARE=
failed() {
  FAILED=$((FAILED + 1))
  say "  NOT TAKEN: $*"
}

# What the settings leave out is no failure.
left_out() { say "  LEFT OUT, as COPY=none says: $*. Without disks no copy of a lost record can be found"; }

# without_tool STATUS COMMAND..: says once where Kafka's tools are looked for, if one is not there.
without_tool() {
  case "$*" in
  126\ *kafka-topics* | 126\ *kafka-metadata-quorum* | 126\ *kafka-log-dirs*) ;;
  127\ *kafka-topics* | 127\ *kafka-metadata-quorum* | 127\ *kafka-log-dirs*) ;;
  *) return 0 ;;
  esac
  if [ -z "$WHERE_TOOLS_ARE" ]; then
    WHERE_TOOLS_ARE="    Kafka's tools are looked for in KAFKA_BIN=$KAFKA_BIN: set KAFKA_BIN to the folder that has kafka-topics there"
    say "$WHERE_TOOLS_ARE"
  fi
}

# keep FILE COMMAND..: what the command prints, below $OUT. tar ends with 1 where a broker goes on
# writing to a file that it reads: that copy is of use.
keep() {
  local file="$OUT/$1" status=0
  shift
  say "+ $*"
  mkdir -p "$(dirname "$file")"
  "$@" >"$file" 2>"$file.err" || status=$?
  if [ "$status" -ne 0 ] && ! { [ "$status" -eq 1 ] && grep -q 'file changed as we read it' "$file.err"; }; then
    failed "$file (exit status $status): $(tail -n 1 "$file.err")"
    without_tool "$status" "$@"
    [ -s "$file" ] || rm -f "$file"
  fi
  rm -f "$file.err"
}

# room KILOBYTES WHAT [OR ELSE]: whether $OUT has space for that and a tenth more.
room() {
  local free
  free=$(df -Pk "$OUT" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge $(($1 + $1 / 10)) ] && return 0
  failed "$2: $1 KiB, and $OUT has room for $free KiB. Set OUT to a larger disk${3:-}"
  return 1
}

begin() {
  case "${1:-}" in
  sizes | collect) MODE=$1 ;;
  *)
    say "Read this script and its settings first. Then: bash $0 sizes, and: bash $0 collect"
    exit 2
    ;;
  esac
  case " ${COPIES:-} " in
  "  " | *" ${COPY:-} "*) ;;
  *)
    say "COPY=$COPY is none of what this script knows: $COPIES"
    exit 2
    ;;
  esac
  mkdir -p "$OUT"
}

finish() {
  say ""
  say "By hand: what producers and consumers were told (a JSON Lines file of topic, partition, offset,"
  say "acks, status and key of each record), below $OUT. Brokers never write that down."
  if [ "$FAILED" -gt 0 ]; then say "$FAILED of the steps failed: see NOT TAKEN above."; fi
  say "Then, where the tool is: replication-analyzer diagnose $OUT"
  say "And what it lacks:       replication-analyzer collect $OUT"
  [ "$FAILED" -eq 0 ]
}
# -------------------------------------------------------------------------------------------------

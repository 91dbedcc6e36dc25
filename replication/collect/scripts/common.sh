# ---- The same for every platform ----------------------------------------------------------------
# `sizes` prints what would be taken and how large it is; `collect` takes it, into a folder of this run
# alone below OUT: what an earlier run took stays as it is. Nothing on a broker is changed, nothing is
# stopped. What cannot be had is said, here and in not-taken.txt, and the rest is taken all the same.
say() { printf '%s\n' "$*" >&2; }

FAILED=0
MODE=
INTO= # the folder of this run
STATUS=0
CAUSE= # why the last step failed
WHERE_TOOLS_ARE=
failed() {
  FAILED=$((FAILED + 1))
  say "  NOT TAKEN: $*"
  write_down "NOT TAKEN: $*"
}

# What the settings leave out is no failure.
left_out() {
  say "  LEFT OUT, as COPY=none says: $*. Without disks no copy of a lost record can be found"
  write_down "LEFT OUT, as COPY=none says: $*"
}

write_down() {
  [ "$MODE" = collect ] || return 0
  if [ ! -s "$INTO/not-taken.txt" ]; then
    printf 'What a script of replication-analyzer collect did not take, and why:\n' >"$INTO/not-taken.txt"
  fi
  printf '%s\n' "$*" >>"$INTO/not-taken.txt"
}

# The last line that tells something: no frame of a stack trace, not kubectl's own line about the status.
last_words() { sed '/^[[:space:]]*$/d; /^[[:space:]]*at /d; /^[[:space:]]*\.\.\. [0-9]* more$/d; /^command terminated with exit code/d' | tail -n 1; }

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

# take FILE COMMAND..: what the command prints, below $INTO; where that fails, STATUS and CAUSE say how.
# tar ends with 1 where a broker goes on writing to a file that it reads, or deletes one: that copy is of use,
# where nothing else was said (a connection that breaks off then ends with 1, too).
TAR_MAY_SAY='file changed as we read it|File removed before we read it'
ENDS_WITH_1="^command terminated with exit code 1\$|^Defaulted container|Removing leading|^tar: Exiting with|^\$"
take() {
  local file="$INTO/$1"
  shift
  say "+ $*"
  mkdir -p "$(dirname "$file")"
  STATUS=0
  "$@" >"$file" 2>"$file.err" || STATUS=$?
  CAUSE=$(last_words <"$file.err")
  if [ "$STATUS" -ne 0 ] && [ -z "$CAUSE" ]; then CAUSE=$(tail -c 1000 "$file" | last_words); fi
  if [ "$STATUS" -eq 1 ] && grep -Eq "$TAR_MAY_SAY" "$file.err" &&
    ! grep -Evq "$TAR_MAY_SAY|$ENDS_WITH_1" "$file.err"; then STATUS=0; fi
  rm -f "$file.err"
  [ "$STATUS" -eq 0 ] && return 0
  [ -s "$file" ] || rm -f "$file"
  return 1
}

# keep FILE COMMAND..: takes it, or says why not.
keep() {
  if take "$@"; then return; fi
  failed "$INTO/$1 (exit status $STATUS): $CAUSE"
  shift
  without_tool "$STATUS" "$@"
}

# room KILOBYTES WHAT [OR ELSE]: whether OUT has space for that and a tenth more.
room() {
  local free
  free=$(df -Pk "$INTO" | awk 'NR == 2 { print $4 }')
  [ "$free" -ge $(($1 + $1 / 10)) ] && return 0
  failed "$2: $1 KiB, and $OUT has room for $free KiB. Set OUT to a larger disk${3:-}"
  return 1
}

begin() {
  local at number=1
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
  if [ -n "$COMMAND_CONFIG" ] && [ ! -r "$COMMAND_CONFIG" ]; then
    say "COMMAND_CONFIG=$COMMAND_CONFIG cannot be read: name a file of client settings on this machine"
    exit 2
  fi
  if [ "$MODE" = sizes ]; then return; fi
  mkdir -p "$OUT" 2>/dev/null
  at="$OUT/$(date -u +%Y-%m-%dT%H%M%SZ)"
  INTO=$at
  until mkdir "$INTO" 2>/dev/null; do
    if [ ! -d "$INTO" ]; then
      say "OUT=$OUT: no folder can be made there. Set OUT to a folder in which this user may write"
      exit 2
    fi
    number=$((number + 1))
    INTO="$at-$number"
  done
  say "This run is kept in $INTO"
}

finish() {
  say ""
  say "By hand: what producers and consumers were told (a JSON Lines file of topic, partition, offset,"
  say "acks, status and key of each record), below $OUT. Brokers never write that down."
  if [ "$FAILED" -gt 0 ]; then say "$FAILED of the steps failed: see NOT TAKEN above${INTO:+, and $INTO/not-taken.txt}."; fi
  say "Then, where the tool is: replication-analyzer diagnose $OUT"
  say "And what it lacks:       replication-analyzer collect $OUT"
  [ "$FAILED" -eq 0 ]
}
# -------------------------------------------------------------------------------------------------

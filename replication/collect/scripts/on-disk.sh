COPIES='digest whole none'

property() { sed -n "s/^[[:space:]]*$1[[:space:]]*=[[:space:]]*//p" "$CONFIG" 2>/dev/null | tail -n 1; }

data_dirs() {
  if [ -n "$DATA_DIRS" ]; then
    printf '%s\n' "$DATA_DIRS" | tr ', ' '\n' | sed '/^$/d'
    return
  fi
  { property log.dirs; property log.dir; property metadata.log.dir; } | tr ',' '\n' | sed 's/^ *//; s/ *$//; /^$/d' | sort -u
}

kafka_tool() {
  local name=$1
  shift
  if [ -x "$KAFKA_BIN/$name.sh" ]; then name="$name.sh"; fi
  if [ -n "$COMMAND_CONFIG" ]; then set -- --command-config "$COMMAND_CONFIG" "$@"; fi
  "$KAFKA_BIN/$name" --bootstrap-server "$BOOTSTRAP" "$@"
}

# Enough from one machine of a cluster. The quorum's state comes before the metadata log is copied.
tools() {
  if [ "$MODE" = sizes ]; then return; fi
  keep describe.txt kafka_tool kafka-topics --describe
  keep metadata-quorum.txt kafka_tool kafka-metadata-quorum describe --status
  keep log-dirs.txt kafka_tool kafka-log-dirs --describe
}

broker_logs() {
  if [ ! -d "$BROKER_LOGS" ]; then
    failed "$BROKER_LOGS is not there: set BROKER_LOGS to the folder of server.log"
    return
  fi
  say "$(du -sk "$BROKER_LOGS" | cut -f 1) KiB in $BROKER_LOGS"
  if [ "$MODE" = sizes ]; then return; fi
  room "$(du -sk "$BROKER_LOGS" | cut -f 1)" "$BROKER_LOGS" || return 0
  keep logs.tar tar -C "$BROKER_LOGS" -cf - .
}

zookeeper() {
  if [ -z "$ZOOKEEPER_DATA" ]; then return; fi
  if [ ! -d "$ZOOKEEPER_DATA/version-2" ]; then
    failed "$ZOOKEEPER_DATA holds no version-2: set ZOOKEEPER_DATA to dataDir of zoo.cfg"
    return
  fi
  say "$(du -sk "$ZOOKEEPER_DATA/version-2" | cut -f 1) KiB in $ZOOKEEPER_DATA/version-2"
  if [ "$MODE" = sizes ]; then return; fi
  keep zookeeper.tar tar -C "$ZOOKEEPER_DATA" -cf - version-2
}

disks() {
  local number=0 dir size
  if [ -z "$(data_dirs)" ]; then
    failed "no log.dirs in $CONFIG: set CONFIG to the broker's settings, or DATA_DIRS to its disks$([ -r "$CONFIG" ] || echo ". $CONFIG is not there, or this user may not read it")"
    return
  fi
  while IFS= read -r dir; do
    number=$((number + 1))
    if [ ! -d "$dir" ]; then
      failed "$dir is not there"
      continue
    fi
    size=$(du -sk "$dir" | cut -f 1)
    if [ -f "$dir/.kafka_cleanshutdown" ]; then
      say "$size KiB in $dir, whose broker was stopped cleanly"
    else
      say "$size KiB in $dir, whose broker runs or was not stopped cleanly: its short end proves nothing"
    fi
    if [ "$MODE" = sizes ]; then continue; fi
    case "$COPY" in
    whole) if room "$size" "$dir" ", or COPY=digest"; then keep "disk-$number.tar" tar -C "$dir" -cf - .; fi ;;
    digest) digest "$dir" "$INTO/disk-$number.digest.jsonl.gz" ;;
    none) left_out "$dir" ;;
    esac
  done <<END
$(data_dirs)
END
}

digest() {
  if [ ! -f "$DIGEST" ]; then
    failed "$1: there is no $DIGEST. Copy it here: where the tool is, it is $DIGEST_OF_TOOL. Or set COPY=whole"
    return
  fi
  say "+ python3 $DIGEST $1 --out $2"
  python3 "$DIGEST" "$1" --out "$2" >&2 || failed "$1: its digest, see above"
}

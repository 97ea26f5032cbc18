#!/bin/bash
# Runs every fuzz target for some seconds.   tools/run_fuzzers.sh BUILD_DIR SECONDS
# What a target finds new goes to BUILD_DIR/corpus/NAME, a crashing input to BUILD_DIR/crashes.
set -euo pipefail
build="$1"
seconds="$2"
mkdir -p "$build/crashes"
count=0
while IFS=$'\t' read -r program corpus; do
  name="$(basename "$program")"
  mkdir -p "$build/corpus/$name"
  echo "== $name for $seconds s"
  "$program" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="$build/crashes/$name-" "$build/corpus/$name" "$corpus" </dev/null
  count=$((count + 1))
done <"$build/fuzzers.txt"
echo "fuzz: $count targets ran clean for $seconds s each"
[ "$count" -gt 0 ] || exit 10

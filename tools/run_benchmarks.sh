#!/bin/bash
# Runs every benchmark program of a build and keeps the results.   tools/run_benchmarks.sh BUILD_DIR
set -euo pipefail
build="$1"
mkdir -p out/bench
count=0
while IFS= read -r -d '' program; do
  name="$(basename "$program")"
  echo "== $name"
  "$program" --benchmark_out="out/bench/$name.json" --benchmark_out_format=json
  count=$((count + 1))
done < <(find "$build" -type f -name '*_bench' -perm -u+x -print0 | sort -z)
echo "bench: $count programs ran, results in out/bench"
[ "$count" -gt 0 ] || exit 10

#!/bin/bash
# Runs every test of a build and says how many ran.   tools/run_tests.sh BUILD_DIR [JOBS]
# The last line is ctest's own summary; exit code 10 when no test ran.
set -euo pipefail
build="$1"
jobs="${2:-$(nproc)}"
log="$build/ctest.log"
status=0
ctest --test-dir "$build" --output-on-failure --no-tests=error --parallel "$jobs" \
  >"$log" 2>&1 || status=$?
# One line a test is in the log; people see what did not pass, and the count.
grep -v -E '^ *(Start +[0-9]+:|[0-9]+/[0-9]+ +Test +#[0-9]+:.* Passed )' "$log" |
  grep -v -E '^[0-9]+% tests passed' || true
summary="$(grep -E '^[0-9]+% tests passed, [0-9]+ tests failed out of [0-9]+$' "$log" || true)"
if [ -z "$summary" ]; then
  echo "test: no test ran; see $log" >&2
  exit 10
fi
total="${summary##* }"
skipped="$(grep -c -E '\*\*\*(Skipped|Not Run)' "$log" || true)"
echo "test: $((total - skipped)) tests ran, $skipped were skipped (each is named above), log in $log"
if [ "$((total - skipped))" -le 0 ]; then
  echo "test: no test ran" >&2
  exit 10
fi
echo "$summary"
exit "$status"

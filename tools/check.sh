#!/bin/bash
# Everything that is checked without running the program. Every step runs, also after a failure;
# the last lines list what failed, and the exit code is 1 if anything did.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
jobs="$(nproc)"
build=build/release
failed=()
skipped=()

# step NAME COMMAND...: prints the name, what the command says if it fails, the time and the result.
step() {
  local name="$1" start="$SECONDS" output
  shift
  printf '== %s\n' "$name"
  if output="$("$@" 2>&1)"; then
    tail -n 1 <<<"$output"
    printf '   %s: ok, %d s\n' "$name" "$((SECONDS - start))"
  else
    printf '%s\n' "$output"
    printf '   %s: FAILED, %d s\n' "$name" "$((SECONDS - start))"
    failed+=("$name")
  fi
}

skip() {
  printf '== %s\n   %s: skipped: %s\n' "$1" "$1" "$2"
  skipped+=("$1")
}

check_format() {
  local count
  count="$(tools/list_sources | tr -cd '\0' | wc -c)"
  if [ "$count" -eq 0 ]; then
    echo "format: there is nothing to read"
    return 10
  fi
  tools/list_sources | xargs -0 -P "$jobs" -n 32 clang-format-14 --dry-run -Werror || return 1
  echo "format: $count files"
}

configure() {
  cmake --preset release --log-level=WARNING >/dev/null && echo "configured build/release"
}

# The nvcc that the cuda preset would take, when it is version 13 or newer.
find_nvcc() {
  local nvcc version
  for nvcc in "${CUDACXX:-}" "$(command -v nvcc)" /usr/local/cuda/bin/nvcc; do
    if [ -n "$nvcc" ] && [ -x "$nvcc" ]; then
      version="$("$nvcc" --version | sed -n 's/.*release \([0-9]*\)\..*/\1/p')"
      if [ "${version:-0}" -ge 13 ]; then
        printf '%s\n' "$nvcc"
        return 0
      fi
    fi
  done
  return 1
}

check_device_code() {
  CUDACXX="$1" cmake --preset cuda --log-level=WARNING >/dev/null &&
    cmake --build --preset cuda --parallel "$jobs" --target h3rt_device_code cuda_test device_test &&
    python3 -B tools/check_resources --budget h3rt/device/resource_budget.json build/cuda
}

# The part of the laboratory that judges stays small; its other parts are counted beside it.
lines_of() {
  tools/list_sources | grep -z "^h3rt/$1/" |
    grep -zvE '_(test|bench|fuzzer)[.](cc|h)$|/test_' | xargs -0 cat | wc -l
}
check_lab_size() {
  local lines
  lines="$(lines_of lab)"
  if [ "$lines" -eq 0 ] || [ "$lines" -ge 6000 ]; then
    echo "h3rt/lab has $lines lines without tests, at least 1 and fewer than 6000 are allowed"
    return 1
  fi
  echo "h3rt/lab: $lines lines without tests (of fewer than 6000); ledger $(lines_of ledger)," \
    "harness $(lines_of harness), imports $(lines_of imports), pages $(lines_of pages)"
}

# The registry, the evidence, the log, what the README claims, the generated pages.
check_lab() {
  cmake --build --preset release --parallel "$jobs" --target h3rt -- --quiet &&
    build/release/apps/h3rt/h3rt lab validate --strict --root . &&
    build/release/apps/h3rt/h3rt lab verify --recompute --root . &&
    build/release/apps/h3rt/h3rt lab report --check --root .
}

step format check_format
step lab_size check_lab_size
step layers python3 -B tools/check_layers
step configure configure
step lab check_lab
step headers python3 -B tools/check_compile headers --build "$build"
# Where numbers, bytes and threads are; the rest has no reason to know the processor.
step aarch64 python3 -B tools/check_compile aarch64 --build "$build" h3rt/base h3rt/num h3rt/tensor \
  h3rt/cpu h3rt/kernels h3rt/ledger h3rt/lab
step clang python3 -B tools/check_compile clang --build "$build"
step tidy python3 -B tools/check_compile tidy --quick --build "$build"
if nvcc="$(find_nvcc)"; then
  step device_code check_device_code "$nvcc"
else
  skip device_code "no nvcc 13"
fi

printf '== check: %d s, %d failed, %d skipped\n' "$SECONDS" "${#failed[@]}" "${#skipped[@]}"
if [ ${#failed[@]} -gt 0 ]; then
  printf 'FAILED: %s\n' "${failed[*]}"
  exit 1
fi
echo "all checks passed"

#!/bin/bash
# Installs the Debian packages that are missing.   tools/setup.sh [build] [check]
# Without arguments: build. Says what it does; does nothing when everything is there. Without root
# it prints the one command to run and exits 1 if something is missing.
set -euo pipefail
list="$(dirname "${BASH_SOURCE[0]}")/packages.txt"
sections=("$@")
[ ${#sections[@]} -gt 0 ] || sections=(build)

# packages SECTION...: sets `wanted`.
packages() {
  local section names
  wanted=()
  for section in "$@"; do
    names="$(awk -v section="[$section]" '
      /^\[/ { inside = ($1 == section); next }
      inside { sub(/#.*/, ""); if (NF) print $1 }' "$list")"
    if [ -z "$names" ]; then
      echo "setup: there is no section [$section] in tools/packages.txt" >&2
      exit 2
    fi
    mapfile -t -O ${#wanted[@]} wanted <<<"$names"
  done
}

# Sets `missing` to those of `wanted` that are not installed.
find_missing() {
  local package
  missing=()
  for package in "${wanted[@]}"; do
    # A pattern of the name also finds what provides it on another architecture; ask for the status.
    if ! dpkg-query -W -f '${db:Status-Abbrev}\n' "$package" 2>/dev/null | grep -q '^.i'; then
      missing+=("$package")
    fi
  done
}

packages "${sections[@]}"
if ! command -v dpkg-query >/dev/null; then
  echo "setup: this is no Debian system; install what corresponds to: ${wanted[*]}" >&2
  exit 1
fi
find_missing
if [ ${#missing[@]} -eq 0 ]; then
  echo "setup: all ${#wanted[@]} packages of ${sections[*]} are installed"
  exit 0
fi
if [ "$(id -u)" -ne 0 ]; then
  # Everything that any target of the Makefile needs, so that root's help is needed once; the
  # package lists of a fresh machine are empty.
  packages build check
  find_missing
  echo "setup: ${#missing[@]} packages are missing; run this once, then call make again:" >&2
  echo "  sudo sh -c 'apt-get update && apt-get install --yes --no-install-recommends" \
    "${missing[*]}'" >&2
  exit 1
fi

install() {
  DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends -qq "${missing[@]}" \
    </dev/null
}
echo "setup: installing ${missing[*]}"
# The package lists may be absent (a fresh container) or old: refresh them only then.
if ! apt-cache show "${missing[@]}" >/dev/null 2>&1; then
  echo "setup: refreshing the package lists"
  apt-get update -qq
fi
if ! install; then
  echo "setup: that failed; refreshing the package lists and trying once more"
  apt-get update -qq
  install
fi
echo "setup: installed ${#missing[@]} packages"

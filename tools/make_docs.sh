#!/bin/bash
# Writes docs/<command>.md from the help text of the built program.   tools/make_docs.sh build/h3rt
set -euo pipefail
program="$1"
cd "$(dirname "$0")/.."
for command in generate inspect parity doctor make-model; do
  {
    printf '# h3rt %s\n\nThis page is the help text, `h3rt %s --help`; a test holds it to that.\n\n```\n' \
      "$command" "$command"
    "$program" "$command" --help
    printf '```\n'
  } >"docs/$command.md"
done

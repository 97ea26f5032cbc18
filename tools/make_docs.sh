#!/bin/bash
# Writes docs/<command>.md from the help text of the built program.   tools/make_docs.sh build/h3rt
set -euo pipefail
program="$1"
cd "$(dirname "$0")/.."
for command in generate inspect parity doctor make-model explain; do
  {
    printf '# h3rt %s\n\nThis page is the help text, `h3rt %s --help`; a test holds it to that.\n\n```\n' \
      "$command" "$command"
    "$program" "$command" --help
    printf '```\n'
    if [ "$command" = explain ]; then
      printf '\n## h3rt explain attention\n\n```\n'
      "$program" explain attention --help
      printf '```\n'
    fi
  } >"docs/$command.md"
done

# The laboratory's commands share a page.
{
  printf '# h3rt lab\n\nThis page is the help texts of `h3rt lab` and its commands; a test holds it to them.\n\n'
  printf '```\n'
  "$program" lab --help
  printf '```\n'
  for command in validate status show plan run gate add set retry import "log verify" "log show" \
    "log append" "log anchor" "log repair" verify report diff \
    attention-golden schema; do
    printf '\n## h3rt lab %s\n\n```\n' "$command"
    # shellcheck disable=SC2086  # two words are two arguments
    "$program" lab $command --help
    printf '```\n'
  done
} >"docs/lab.md"

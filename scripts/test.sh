#!/bin/bash
# test.sh [ARGUMENT..]: every test. Those without Spark run beside those on Spark, a process each, so that both cores have work.
# With arguments, pytest with these and nothing beside it.
set -uo pipefail
cd "$(dirname "$0")/.."
pytest=(scripts/with-java.sh .venv/bin/pytest)
[ $# = 0 ] || exec "${pytest[@]}" "$@"

log=$(mktemp)
"${pytest[@]}" -m "not spark" >"$log" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null; rm -f "$log"' EXIT
printf 'tests on Spark; those without run beside them and are shown after them\n'
"${pytest[@]}" -m spark
on_spark=$?
wait "$beside"
without=$?
printf '\ntests without Spark\n'
cat "$log"
exit $((on_spark || without))

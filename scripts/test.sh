#!/bin/bash
# test.sh [ARGUMENT..]: ruff, mypy and every test. What needs no Spark runs beside what does, so that both cores have work.
# With arguments, pytest with these and nothing beside it.
set -uo pipefail
cd "$(dirname "$0")/.."
pytest=(scripts/with-java.sh .venv/bin/pytest)
[ $# = 0 ] || exec "${pytest[@]}" "$@"

without_spark() {
    make --no-print-directory lint && "${pytest[@]}" -m "not spark"
}

log=$(mktemp)
without_spark >"$log" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null; rm -f "$log"' EXIT
printf 'tests on Spark; ruff, mypy and the other tests run beside them and are shown after them\n'
"${pytest[@]}" -m spark
on_spark=$?
wait "$beside"
without=$?
printf '\nruff, mypy, and tests without Spark\n'
cat "$log"
exit $((on_spark || without))

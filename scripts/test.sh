#!/bin/bash
# test.sh [ARGUMENT..]: ruff, mypy and every test. What shares a Spark session runs beside all else, so that both cores have work.
# With arguments, pytest with these and nothing beside it.
set -uo pipefail
cd "$(dirname "$0")/.."
pytest=(scripts/with-java.sh .venv/bin/pytest)
[ $# = 0 ] || exec "${pytest[@]}" "$@"

all_else() {
    make --no-print-directory lint && "${pytest[@]}" -m "apart or not spark"
}

log=$(mktemp)
all_else >"$log" 2>&1 &
beside=$!
trap 'kill "$beside" 2>/dev/null; rm -f "$log"' EXIT
printf 'tests in a Spark session; ruff, mypy and the other tests run beside them and are shown after them\n'
"${pytest[@]}" -m "spark and not apart"
on_spark=$?
wait "$beside"
without=$?
printf '\nruff, mypy, and the other tests\n'
cat "$log"
exit $((on_spark || without))

#!/bin/bash
# test.sh [ARGUMENT..]: ruff, mypy and every test, in three streams beside each other, so that no core waits for a JVM to start:
# what shares one Spark session; ruff, mypy and what starts a Spark of its own; what needs no Spark.
# With arguments, pytest with these and nothing beside it.
set -uo pipefail
cd "$(dirname "$0")/.."
pytest=(scripts/with-java.sh .venv/bin/pytest)
[ $# = 0 ] || exec "${pytest[@]}" "$@"

checks_and_own_sessions() {
    make --no-print-directory lint && "${pytest[@]}" -m own_session
}

without_spark() {
    "${pytest[@]}" -m "not spark"
}

logs=$(mktemp -d)
checks_and_own_sessions >"$logs/own" 2>&1 &
own=$!
without_spark >"$logs/without" 2>&1 &
without=$!
trap 'kill "$own" "$without" 2>/dev/null; rm -rf "$logs"' EXIT
printf 'tests on one Spark session; all others, ruff and mypy run beside them and are shown after them\n'
"${pytest[@]}" -m "spark and not own_session"
failed=$?

# show NAME PROCESS HEADLINE: what a stream has said, when it has ended.
show() {
    wait "$2" || failed=1
    printf '\n%s\n' "$3"
    cat "$logs/$1"
}
show own "$own" "ruff, mypy, and tests that start a Spark of their own"
show without "$without" "tests without Spark"
exit "$failed"

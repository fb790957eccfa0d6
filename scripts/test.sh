#!/bin/bash
# test.sh [ARGUMENT..]: ruff, mypy and every test, so that both cores have work to the end: ruff and mypy beside the rest of the
# set-up; tests without Spark, in two processes, in all the time that those on Spark leave. With arguments, pytest with these and
# nothing beside it.
set -uo pipefail
cd "$(dirname "$0")/.."
make=(make --no-print-directory)
pytest=(scripts/with-java.sh .venv/bin/pytest)
if [ $# != 0 ]; then
    "${make[@]}" setup && exec "${pytest[@]}" "$@"
    exit 1
fi

logs=$(mktemp -d)
trap 'kill $(jobs -p) 2>/dev/null; rm -rf "$logs"' EXIT
others=()
beside() { # beside NAME COMMAND..: run it when there is nothing better to do
    nice "${@:2}" >"$logs/$1" 2>&1 &
    others+=($!)
}
beside 1-checks "${make[@]}" lint
"${make[@]}" setup || exit 1
printf 'tests on Spark; ruff, mypy and the other tests run beside them and are shown after them\n'
beside 2-runtime "${pytest[@]}" -m "not spark" tests/runtime # about half of them
beside 3-rest "${pytest[@]}" -m "not spark" --ignore tests/runtime
"${pytest[@]}" -m spark
failed=$?
for each in "${others[@]}"; do
    wait "$each" || failed=1
done
printf '\nruff, mypy, and tests without Spark\n'
cat "$logs"/*
exit "$failed"

#!/bin/bash
# test.sh [ARGUMENT..]: ruff, mypy and every test, two things at a time, so that both cores have work: ruff and mypy beside the
# rest of the set-up, what needs no Spark beside what does. With arguments, pytest with these and nothing beside it.
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
"${make[@]}" lint >"$logs/checks" 2>&1 &
checks=$!
"${make[@]}" setup || exit 1
printf 'tests on Spark; ruff, mypy and the other tests run beside them and are shown after them\n'
"${pytest[@]}" -m "not spark" >"$logs/without" 2>&1 &
without=$!
"${pytest[@]}" -m spark
failed=$?
wait "$checks" || failed=1
wait "$without" || failed=1
printf '\nruff, mypy, and tests without Spark\n'
cat "$logs/checks" "$logs/without"
exit "$failed"

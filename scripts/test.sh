#!/bin/bash
# test.sh [ARGUMENT..]: ruff, mypy and every test, so that both cores have work to the end: ruff and mypy beside the rest of the
# set-up; tests without Spark, in two processes, as soon as they can, and in all the time that those on Spark leave; these in two
# more, which take turns (tests/turns.py): one begins with those that start Spark themselves. With arguments, pytest with these and
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
beside() { # beside NAME COMMAND..: run it, and keep what it says for later
    "${@:2}" >"$logs/$1" 2>&1 &
    others+=($!)
}
beside 1-checks nice "${make[@]}" lint
"${make[@]}" kernels || exit 1
properties=(tests/runtime tests/steps tests/evolution) # about half of them
beside 3-properties nice "${pytest[@]}" -m "not spark" "${properties[@]}"
beside 4-rest nice "${pytest[@]}" -m "not spark" "${properties[@]/#/--ignore=}"
"${make[@]}" setup || exit 1
printf 'tests on Spark; ruff, mypy and the other tests run beside them and are shown after them\n'
mkdir "$logs/turns"
export HEADRACE_TURNS=$logs/turns
beside 2-spark "${pytest[@]}" -m spark
"${pytest[@]}" -m "spark and not alone"
failed=$?
for each in "${others[@]}"; do
    wait "$each" || failed=1
done
printf '\nruff and mypy, the other tests on Spark, and tests without it\n'
cat "$logs"/[0-9]*
exit "$failed"

#!/bin/bash
# Run a command with the Java runtime that set-up found.
set -euo pipefail
found="$(dirname "$0")/../.venv/.java-home"
if [ -s "$found" ] && home=$(cat "$found") && [ -x "$home/bin/java" ]; then
    export JAVA_HOME=$home
fi
exec "$@"

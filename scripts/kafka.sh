#!/bin/bash
# kafka.sh [ARGUMENT..]: a Kafka broker on this machine, until Ctrl-C. Maven fetches it the first time.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh

if ! command -v mvn >/dev/null 2>&1; then
    say "Maven fetches Kafka, and there is none; trying to install it"
    apt_install maven || say "it could not be installed from here"
fi
exec scripts/with-java.sh .venv/bin/python -m headrace.log.broker "$@"

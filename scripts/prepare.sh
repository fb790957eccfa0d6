#!/bin/bash
# prepare.sh VENV kernels|classes: compile kernels, or archive Spark's classes, so that the first run does not have to.
# Nothing depends on it but how soon things start.
set -euo pipefail
cd "$(dirname "$0")/.."
. scripts/lib.sh
venv=$1

case $2 in
kernels) # They are compiled when they are first used, and kept. Better now than in the first batch of a demo.
    say "compiling kernels"
    "$venv/bin/python" -m headrace.kernels.warm >&2 || say "not all kernels could be compiled; they will be when they are needed"
    ;;
classes) # Spark loads thousands of classes; a JVM maps an archive of them in less time than it reads the jars.
    say "archiving the classes that Spark loads"
    JAVA_HOME=$(cat "$venv/.java-home") "$venv/bin/python" -m headrace.spark.jvm.archive >&2 ||
        say "no archive of classes: Spark will start more slowly"
    say "ready (. .venv/bin/activate puts headrace on your path)"
    ;;
esac

#!/bin/sh
# The Python of Spark's workers. Spark puts PySpark first on their path as a zip, from which every process would compile it anew;
# without the zips they import the same PySpark from where it is installed (see headrace.spark.workers.interpreter). Where a process is there
# that has loaded everything (headrace.spark.workers.zygote), it is asked to become this one.
set -f
rest=
IFS=:
for entry in $PYTHONPATH; do
    case $entry in
        */pyspark.zip | */py4j-*-src.zip) ;;
        *) rest=${rest:+$rest:}$entry ;;
    esac
done
export PYTHONPATH="$rest"
if [ -S "$HEADRACE_ZYGOTE" ]; then
    exec "$HEADRACE_PYTHON" -I -S "${0%/*}/stub.py" "$@"
fi
exec "$HEADRACE_PYTHON" "$@"

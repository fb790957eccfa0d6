#!/bin/sh
# The Python of Spark's workers. Spark puts PySpark first on their path as a zip, from which every process would compile it anew;
# without the zips they import the same PySpark from where it is installed (see headrace.spark.interpreter).
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
exec "$HEADRACE_PYTHON" "$@"

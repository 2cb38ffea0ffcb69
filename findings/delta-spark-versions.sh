#!/bin/sh
# There is no Delta library for Spark 4.3: the one for Spark 4.2 is on Maven, and `delta-spark` of PyPI takes PySpark up to 4.2.0, without
# its patches.
. "$(dirname "$0")/common.sh"
needs python3 java mvn
python3 -m venv venv
venv/bin/python -m pip download --quiet --disable-pip-version-check --no-deps delta-spark==4.4.1 >&2
venv/bin/python -m zipfile --extract delta_spark-4.4.1-py3-none-any.whl wheel
requirement() { grep 'Requires-Dist: pyspark' wheel/*.dist-info/METADATA; }
on_maven() {
    mvn --quiet --batch-mode --update-snapshots org.apache.maven.plugins:maven-dependency-plugin:3.8.1:get -Dtransitive=false \
        -Dartifact="io.delta:$1" > maven.log 2>&1 && echo found && return
    grep -o 'Could not find artifact' maven.log | head -n 1
}
expect "delta-spark 4.4.1" "$(requirement)" "Requires-Dist: pyspark<=4.2.0,>=4.0.1"
expect "delta-spark_4.2_2.13 4.4.0" "$(on_maven delta-spark_4.2_2.13:4.4.0)" found
expect "delta-spark_4.3_2.13 4.4.0" "$(on_maven delta-spark_4.3_2.13:4.4.0)" "Could not find artifact"

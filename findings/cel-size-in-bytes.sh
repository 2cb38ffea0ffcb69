#!/bin/sh
# common-expression-language, a package of Python, counts the bytes of a text in `size()`. The specification of CEL says code
# points, which cel-python counts.
. "$(dirname "$0")/common.sh"
needs python3
python_packages common-expression-language==0.10.0 cel-python==0.5.0
cat > bytes.py <<'PY'
import cel
print(cel.evaluate('size("na\u00efve")'))
PY
cat > points.py <<'PY'
import celpy
environment = celpy.Environment()
print(environment.program(environment.compile('size("na\u00efve")')).evaluate({}))
PY
expect "cel-python 0.5.0, size(\"naïve\")" "$(venv/bin/python points.py)" 5
expect "common-expression-language 0.10.0, size(\"naïve\")" "$(venv/bin/python bytes.py)" 6

#!/bin/sh
# `optimize.compact()` of deltalake deletes entries of the log that are older than 30 days, unasked, once it has written a
# checkpoint: the versions before cannot be read any more, and a program that reads the log from version 0 finds no table.
. "$(dirname "$0")/common.sh"
needs python3
python_packages deltalake==1.6.6 pyarrow==26.0.1
cat > compact.py <<'PY'
import glob, os, time
import pyarrow
from deltalake import DeltaTable, write_deltalake
for number in range(12):
    write_deltalake("table", pyarrow.table({"number": [number]}), mode="append")
DeltaTable("table").create_checkpoint()
long_ago = time.time() - 40 * 86_400
for file in glob.glob("table/_delta_log/*"):
    os.utime(file, (long_ago, long_ago))
print(len(glob.glob("table/_delta_log/*.json")), "entries, version 3 has", DeltaTable("table", version=3).to_pyarrow_table().num_rows, "rows")
DeltaTable("table").optimize.compact()
entries = sorted(int(os.path.basename(file)[:20]) for file in glob.glob("table/_delta_log/*.json"))
print("entries", *entries)
try:
    DeltaTable("table", version=3)
    print("version 3 is read")
except Exception as error:
    print(type(error).__name__)
PY
expect "deltalake 1.6.6, 12 appends, a checkpoint, 40 days, compact()" "$(venv/bin/python compact.py | paste -sd';' -)" \
    "12 entries, version 3 has 4 rows;entries 11 12;TableNotFoundError"

#!/bin/sh
# hyparquet gives timestamps of microseconds as dates of milliseconds: the last three digits are lost, so that events of one
# millisecond cannot be told apart or put in order by it.
. "$(dirname "$0")/common.sh"
needs node npm python3
npm_packages hyparquet@1.31.5
python_packages pyarrow==26.0.1
venv/bin/python -c '
import pyarrow as pa, pyarrow.parquet as pq
times = pa.array([1700000000123456, 1700000000123999], pa.timestamp("us", tz="UTC"))
pq.write_table(pa.table({"time": times}), "table.parquet")'
cat > read.mjs <<'JS'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
const rows = await parquetReadObjects({ file: await asyncBufferFromFile('table.parquet') });
console.log(rows.map((row) => row.time.toISOString()).join(' '));
JS
expect "hyparquet 1.31.5, .123456 and .123999" "$(node read.mjs)" "2023-11-14T22:13:20.123Z 2023-11-14T22:13:20.123Z"

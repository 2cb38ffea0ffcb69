#!/bin/sh
# hyparquet decodes a column of bytes without an annotation as UTF-8 by default, which damages it: bytes that are no text
# become U+FFFD. With `utf8: false` they are kept.
. "$(dirname "$0")/common.sh"
needs node npm python3
npm_packages hyparquet@1.31.5
python_packages pyarrow==26.0.1
venv/bin/python -c '
import pyarrow as pa, pyarrow.parquet as pq
pq.write_table(pa.table({"frame": pa.array([bytes.fromhex("a16178fffe80")], pa.binary())}), "table.parquet")'
cat > read.mjs <<'JS'
import { asyncBufferFromFile, parquetReadObjects } from 'hyparquet';
const file = await asyncBufferFromFile('table.parquet');
const rows = await parquetReadObjects({ file, ...JSON.parse(process.argv[2]) });
console.log(Buffer.from(rows[0].frame).toString('hex'));
JS
expect "hyparquet 1.31.5, utf8: false" "$(node read.mjs '{"utf8": false}')" a16178fffe80
expect "hyparquet 1.31.5" "$(node read.mjs '{}')" efbfbd6178efbfbdefbfbdefbfbd

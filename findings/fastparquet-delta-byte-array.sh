#!/bin/sh
# fastparquet cannot read the encodings DELTA_LENGTH_BYTE_ARRAY and DELTA_BYTE_ARRAY of Parquet 2, which pyarrow, Polars and
# DuckDB write and read.
. "$(dirname "$0")/common.sh"
needs python3
python_packages fastparquet==2026.9.0 pyarrow==26.0.1
cat > read.py <<'PY'
import sys, pyarrow as pa, pyarrow.parquet as pq, fastparquet
pq.write_table(pa.table({"did": ["a", "ab"]}), "t.parquet", use_dictionary=False, column_encoding={"did": sys.argv[1]})
try:
    print(fastparquet.ParquetFile("t.parquet").to_pandas()["did"].tolist())
except NotImplementedError as error:
    print("NotImplementedError:", error)
PY
for encoding in DELTA_LENGTH_BYTE_ARRAY=6 DELTA_BYTE_ARRAY=7; do
    expect "fastparquet 2026.9.0, $encoding" "$(venv/bin/python read.py ${encoding%=*})" \
        "NotImplementedError: Encoding ${encoding#*=}"
done

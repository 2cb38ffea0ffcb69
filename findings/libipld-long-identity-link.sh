#!/bin/sh
# libipld refuses a whole record for one link with the identity hash of more than 64 bytes, which DAG-CBOR allows. cbrrr and dag-cbor
# read it.
. "$(dirname "$0")/common.sh"
needs python3
python_packages libipld==3.5.0 cbrrr==1.1.0 dag-cbor==0.3.3
cat > decode.py <<'PY'
import cbrrr, dag_cbor, libipld
for length in (64, 65):
    cid = bytes([1, 0x55, 0, length]) + b"x" * length
    record = b"\xa1\x61l\xd8\x2a\x58" + bytes([len(cid) + 1]) + b"\0" + cid
    for decode in (libipld.decode_dag_cbor, cbrrr.decode_dag_cbor, dag_cbor.decode):
        try:
            decode(record)
            print(length, "read")
        except ValueError as error:
            print(length, error)
PY
expect "libipld 3.5.0, cbrrr 1.1.0, dag-cbor 0.3.3" "$(venv/bin/python decode.py | paste -sd';' -)" \
    "64 read;64 read;64 read;65 Failed to decode DAG-CBOR. Invalid CID;65 read;65 read"

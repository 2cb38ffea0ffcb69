#!/bin/sh
# cbrrr decodes and encodes a link of CID version 0 in DAG-CBOR, but writes its text as base32, which no CID has, and cannot read the
# text that such a CID has.
. "$(dirname "$0")/common.sh"
needs python3
python_packages cbrrr==1.1.0 multiformats==0.3.1.post4 dag-cbor==0.3.3
cat > texts.py <<'PY'
import sys

import cbrrr
import dag_cbor
import multiformats

link = bytes.fromhex("d82a5823001220" + "11" * 32)
usual, text = str(dag_cbor.decode(link)), cbrrr.decode_dag_cbor(link).encode()
reader, written = {
    "text by dag-cbor 0.3.3": (str, usual),
    "text by cbrrr 1.1.0": (str, text),
    "multiformats 0.3.1, that text": (multiformats.CID.decode, text),
    "cbrrr 1.1.0, the text by dag-cbor": (cbrrr.CID.decode, usual),
}[sys.argv[1]]
try:
    print(reader(written))
except ValueError as error:
    print(error)
PY
expect_text() {
    expect "$1" "$(venv/bin/python texts.py "$1")" "$2"
}
expect_text "text by dag-cbor 0.3.3" QmPVGjYFugq4XUyBfoTHG6c3qxfBS26jEdaFM1gdAVuMZ2
expect_text "text by cbrrr 1.1.0" bciqbceirceirceirceirceirceirceirceirceirceirceirceircei
expect_text "multiformats 0.3.1, that text" "CIDv0 may not be multibase encoded (found multibase encoded bytes starting with 0x12)."
expect_text "cbrrr 1.1.0, the text by dag-cbor" "I don't know how to decode this CID"

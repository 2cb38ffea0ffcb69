#!/bin/sh
# `atdata` of indigo reads an integer beyond 2^53 from JSON as its neighbour, without an error, although it reads the same integer
# from CBOR: a record that went through JSON has another CID.
. "$(dirname "$0")/common.sh"
needs go
go_program github.com/bluesky-social/indigo@v0.0.0-20260605210604-af2fec94f34c <<'GO'
package main

import (
	"encoding/hex"
	"fmt"

	"github.com/bluesky-social/indigo/atproto/atdata"
)

func main() {
	record, _ := hex.DecodeString("a161781b0020000000000001")
	fromCBOR, err := atdata.UnmarshalCBOR(record)
	fmt.Println(fromCBOR, err)
	fromJSON, err := atdata.UnmarshalJSON([]byte(`{"x": 9007199254740993}`))
	fmt.Println(fromJSON, err)
}
GO
expect "indigo of June 2026, 2^53 + 1 from CBOR and JSON" "$(./program | paste -sd';' -)" \
    "map[x:9007199254740993] <nil>;map[x:9007199254740992] <nil>"

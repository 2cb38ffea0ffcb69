#!/bin/sh
# `atdata` of indigo decodes unsigned integers of 64 bits as signed ones, without an error: 2^64 - 1 becomes -1. DAG-CBOR allows
# them; the data model of the AT Protocol does not, so that an error is expected.
. "$(dirname "$0")/common.sh"
needs go
go_program github.com/bluesky-social/indigo@v0.0.0-20260605210604-af2fec94f34c <<'GO'
package main

import (
	"encoding/hex"
	"fmt"
	"os"

	"github.com/bluesky-social/indigo/atproto/atdata"
)

func main() {
	record, _ := hex.DecodeString(os.Args[1])
	data, err := atdata.UnmarshalCBOR(record)
	fmt.Println(data, err)
}
GO
expect "indigo of June 2026, {x: 2^63 - 1}" "$(./program a161781b7fffffffffffffff)" "map[x:9223372036854775807] <nil>"
expect "indigo of June 2026, {x: 2^64 - 1}" "$(./program a161781bffffffffffffffff)" "map[x:-1] <nil>"

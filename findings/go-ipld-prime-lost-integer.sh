#!/bin/sh
# go-ipld-prime decodes the smallest integer of DAG-CBOR, -2^64, to 0 without an error: encoded again, the record is another one.
# -2^63 is right, and integers between the two are refused.
. "$(dirname "$0")/common.sh"
needs go
go_program github.com/ipld/go-ipld-prime@v0.24.0 <<'GO'
package main

import (
	"encoding/hex"
	"fmt"
	"os"

	"github.com/ipld/go-ipld-prime"
	"github.com/ipld/go-ipld-prime/codec/dagcbor"
)

func main() {
	record, _ := hex.DecodeString(os.Args[1])
	node, err := ipld.Decode(record, dagcbor.Decode)
	if err != nil {
		fmt.Println("refused")
		return
	}
	again, err := ipld.Encode(node, dagcbor.Encode)
	if err != nil {
		panic(err)
	}
	fmt.Println(hex.EncodeToString(again))
}
GO
expect "go-ipld-prime 0.24.0, {x: -2^63} encoded again" "$(./program a161783b7fffffffffffffff)" a161783b7fffffffffffffff
expect "go-ipld-prime 0.24.0, {x: -2^63 - 1}" "$(./program a161783b8000000000000000)" refused
expect "go-ipld-prime 0.24.0, {x: -2^64} encoded again" "$(./program a161783bffffffffffffffff)" a1617800

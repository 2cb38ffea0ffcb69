#!/bin/sh
# `atdata` of indigo and @atproto/lex-json read an integer beyond 2^53 from JSON as its neighbour, without an error, although both SDKs
# read the same integer from CBOR: a record that went through JSON has another CID.
. "$(dirname "$0")/common.sh"
needs go node npm
npm_packages @atproto/lex-cbor@0.1.6 @atproto/lex-json@0.1.9
cat > read.mjs <<'JS'
import { decode } from '@atproto/lex-cbor';
import { lexParse } from '@atproto/lex-json';
console.log(`${decode(Buffer.from('a161781b0020000000000001', 'hex')).x} ${lexParse('{"x": 9007199254740993}').x}`);
JS
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
	if err != nil {
		panic(err)
	}
	fromJSON, err := atdata.UnmarshalJSON([]byte(`{"x": 9007199254740993}`))
	if err != nil {
		panic(err)
	}
	fmt.Println(fromCBOR["x"], fromJSON["x"])
}
GO
expect "indigo of June 2026, 2^53 + 1 from CBOR and JSON" "$(./program)" "9007199254740993 9007199254740992"
expect "@atproto/lex-cbor 0.1.6 and lex-json 0.1.9" "$(node read.mjs)" "9007199254740993 9007199254740992"

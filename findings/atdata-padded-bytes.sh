#!/bin/sh
# `atdata` of indigo refuses `$bytes` with padding, which the data model of the AT Protocol calls optional and @atproto/lex-json reads.
. "$(dirname "$0")/common.sh"
needs go node npm
npm_packages @atproto/lex-json@0.1.9
go_program github.com/bluesky-social/indigo@v0.0.0-20260605210604-af2fec94f34c <<'GO'
package main

import (
	"fmt"
	"os"

	"github.com/bluesky-social/indigo/atproto/atdata"
)

func main() {
	_, err := atdata.UnmarshalJSON([]byte(os.Args[1]))
	fmt.Println(err)
}
GO
cat > read.mjs <<'JS'
import { lexParse } from '@atproto/lex-json';
console.log(lexParse(process.argv[2]).x.length, 'byte');
JS
expect "@atproto/lex-json 0.1.9" "$(node read.mjs '{"x": {"$bytes": "/w=="}}')" "1 byte"
expect "indigo of June 2026, without padding" "$(./program '{"x": {"$bytes": "/w"}}')" "<nil>"
expect "indigo of June 2026, with padding" "$(./program '{"x": {"$bytes": "/w=="}}')" \
    'decoding $byte value: illegal base64 data at input byte 2'

#!/bin/sh
# go-nostr cannot read the `naddr` of a replaceable event, which it writes: NIP-19 gives such an event an empty identifier, and the
# reader takes that, or kind 0, for a missing field. nostr-tools reads it.
. "$(dirname "$0")/common.sh"
needs node npm go
npm_packages nostr-tools@2.25.2
cat > decode.mjs <<'JS'
import { nip19 } from 'nostr-tools';
const { kind, identifier } = nip19.decode(process.argv[2]).data;
console.log(JSON.stringify({ kind, identifier }));
JS
go_program github.com/nbd-wtf/go-nostr@v0.52.3 <<'GO'
package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/nbd-wtf/go-nostr/nip19"
)

func main() {
	kind, _ := strconv.Atoi(os.Args[1])
	address, _ := nip19.EncodeEntity(strings.Repeat("3b", 32), kind, os.Args[2], nil)
	if len(os.Args) > 3 {
		fmt.Println(address)
		return
	}
	_, _, err := nip19.Decode(address)
	fmt.Println(err)
}
GO
expect "go-nostr 0.52.3, an article" "$(./program 30023 title)" "<nil>"
expect "go-nostr 0.52.3, a list of relays" "$(./program 10002 '')" "incomplete naddr"
expect "go-nostr 0.52.3, a profile" "$(./program 0 '')" "incomplete naddr"
expect "nostr-tools 2.25.2, the list of relays" "$(node decode.mjs "$(./program 10002 '' text)")" '{"kind":10002,"identifier":""}'

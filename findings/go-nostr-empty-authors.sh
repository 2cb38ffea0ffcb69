#!/bin/sh
# A filter with an empty list of authors matches nothing in go-nostr and nostr-tools. go-nostr writes it without the list, as it does with
# `ids` and `kinds`: the relay is asked for the events of everybody. An empty list of a tag's values is kept.
. "$(dirname "$0")/common.sh"
needs node npm go
npm_packages nostr-tools@2.25.2
cat > match.mjs <<'JS'
import { matchFilter } from 'nostr-tools';
const event = { id: 'b', pubkey: 'a', created_at: 5, kind: 1, tags: [], content: '', sig: '' };
console.log(matchFilter(JSON.parse(process.argv[2]), event));
JS
go_program github.com/nbd-wtf/go-nostr@v0.52.3 <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/nbd-wtf/go-nostr"
)

func main() {
	var read, again nostr.Filter
	_ = json.Unmarshal([]byte(os.Args[1]), &read)
	_ = json.Unmarshal([]byte(read.String()), &again)
	event := &nostr.Event{Kind: 1, PubKey: "a"}
	fmt.Println(read.Matches(event), read, again.Matches(event))
}
GO
expect "nostr-tools 2.25.2, matches" "$(node match.mjs '{"kinds":[1],"authors":[]}')" "false"
expect "go-nostr 0.52.3, matches, as written, matches then" "$(./program '{"kinds":[1],"authors":[]}')" 'false {"kinds":[1]} true'
expect "go-nostr 0.52.3, of a tag" "$(./program '{"kinds":[1],"#t":[]}')" 'false {"kinds":[1],"#t":[]} false'

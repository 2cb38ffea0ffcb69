#!/bin/sh
# A filter with an empty list of authors matches nothing in go-nostr and nostr-tools, and everything in rust-nostr. go-nostr writes it
# without the list, so that the relay is asked for the events of everybody. An empty list of a tag's values matches nothing in all of them.
. "$(dirname "$0")/common.sh"
needs node npm go python3
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
python_packages nostr-sdk==0.45.1
cat > match.py <<'PY'
import sys

from nostr_sdk import EventBuilder, Filter, Keys, Kind

event = EventBuilder(Kind(1), "").finalize(Keys.generate())
print(Filter.from_json(sys.argv[1]).match_event(event))
PY
expect "nostr-tools 2.25.2, matches" "$(node match.mjs '{"kinds":[1],"authors":[]}')" "false"
expect "go-nostr 0.52.3, matches, as written, matches then" "$(./program '{"kinds":[1],"authors":[]}')" 'false {"kinds":[1]} true'
expect "go-nostr 0.52.3, of a tag" "$(./program '{"kinds":[1],"#t":[]}')" 'false {"kinds":[1],"#t":[]} false'
expect "nostr-sdk 0.45.1, matches" "$(venv/bin/python match.py '{"kinds":[1],"authors":[]}')" True
expect "nostr-sdk 0.45.1, of a tag" "$(venv/bin/python match.py '{"kinds":[1],"#t":[]}')" False

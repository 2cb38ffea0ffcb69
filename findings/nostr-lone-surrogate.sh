#!/bin/sh
# nostr-tools signs and verifies an event whose text has half of a surrogate pair, as text has that was cut by its length in
# JavaScript. Others do not verify it: go-nostr hashes U+FFFD instead, pynostr throws.
. "$(dirname "$0")/common.sh"
needs node npm go python3
npm_packages nostr-tools@2.25.2
python_packages pynostr==0.7.0
cat > sign.mjs <<'JS'
import { writeFileSync } from 'node:fs';
import { finalizeEvent, verifyEvent } from 'nostr-tools';
const content = 'sea \u{1f30a}'.slice(0, 5);
const text = JSON.stringify(finalizeEvent({ kind: 1, created_at: 1, tags: [], content }, new Uint8Array(32).fill(7)));
writeFileSync('event.json', text);
console.log(verifyEvent(JSON.parse(text)));
JS
cat > verify.py <<'PY'
import json
from pynostr.event import Event
try:
    print(Event.from_dict(json.load(open("event.json"))).verify())
except UnicodeEncodeError as error:
    print("UnicodeEncodeError:", error.reason)
PY
go_program github.com/nbd-wtf/go-nostr@v0.52.3 <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	"github.com/nbd-wtf/go-nostr"
)

func main() {
	text, _ := os.ReadFile("event.json")
	var event nostr.Event
	if err := json.Unmarshal(text, &event); err != nil {
		panic(err)
	}
	fmt.Printf("%+q, id %v\n", event.Content, event.CheckID())
}
GO
expect "nostr-tools 2.25.2" "$(node sign.mjs)" true
expect "go-nostr 0.52.3" "$(./program)" '"sea \ufffd", id false'
expect "pynostr 0.7.0" "$(venv/bin/python verify.py)" "UnicodeEncodeError: surrogates not allowed"

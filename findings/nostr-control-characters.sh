#!/bin/sh
# An event whose id is computed as NIP-01 says, with the control character U+0001 verbatim, is invalid for nostr-tools, go-nostr and pynostr:
# they hash the six characters of its JSON escape. An event with that id is valid for them.
. "$(dirname "$0")/common.sh"
needs node npm go python3
npm_packages nostr-tools@2.25.2 @noble/curves@2.4.0
python_packages pynostr==0.7.0
cat > verify.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { verifyEvent } from 'nostr-tools';
console.log(verifyEvent(JSON.parse(readFileSync(process.argv[2]))));
JS
cat > make.mjs <<'JS'
import { createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { schnorr } from '@noble/curves/secp256k1.js';
const key = new Uint8Array(32).fill(7);
const pubkey = Buffer.from(schnorr.getPublicKey(key)).toString('hex');
for (const [name, content] of [['verbatim', '\u0001'], ['escaped', '\\u0001']]) {
  const id = createHash('sha256').update(`[0,"${pubkey}",1,1,[],"${content}"]`).digest();
  const sig = Buffer.from(schnorr.sign(id, key)).toString('hex');
  const event = { id: id.toString('hex'), pubkey, created_at: 1, kind: 1, tags: [], content: '\u0001', sig };
  writeFileSync(`${name}.json`, JSON.stringify(event));
}
JS
cat > verify.py <<'PY'
import json, sys
from pynostr.event import Event
print(str(Event.from_dict(json.load(open(sys.argv[1]))).verify()).lower())
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
	text, _ := os.ReadFile(os.Args[1])
	var event nostr.Event
	if err := json.Unmarshal(text, &event); err != nil {
		panic(err)
	}
	isSigned, _ := event.CheckSignature()
	fmt.Println(event.CheckID() && isSigned)
}
GO
node make.mjs
for form in escaped=true verbatim=false; do
    file=${form%=*}.json
    expect "nostr-tools 2.25.2, go-nostr 0.52.3, pynostr 0.7.0, ${form%=*}" \
        "$(node verify.mjs $file) $(./program $file) $(venv/bin/python verify.py $file)" "${form#*=} ${form#*=} ${form#*=}"
done

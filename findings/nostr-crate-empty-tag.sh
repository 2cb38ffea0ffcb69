#!/bin/sh
# The crate nostr cannot read an event with an empty tag, which NIP-01 does not forbid. nostr-tools and go-nostr find it valid.
. "$(dirname "$0")/common.sh"
needs node npm go cargo cc
npm_packages nostr-tools@2.25.2
cat > event.json <<'JSON'
{"id":"6f84e00f612cacc2fcfcc14c4fc72ce47f40d110c740487b79de78643c6d20c7","pubkey":"989c0b76cb563971fdc9bef31ec06c3560f3249d6ee9e5d83c57625596e05f6f","created_at":1,"kind":1,"tags":[[]],"content":"","sig":"da6d3f9c547e11b1b7314348c5fbe22a02793d496f04a8dcd4bf2fe4d55ebff80249258099f309810ae0fce2a7578d29afa32c21fadc22d316bda2556980a9fa"}
JSON
cat > verify.mjs <<'JS'
import { readFileSync } from 'node:fs';
import { verifyEvent } from 'nostr-tools';
console.log(verifyEvent(JSON.parse(readFileSync('event.json'))));
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
	text, _ := os.ReadFile("event.json")
	var event nostr.Event
	if err := json.Unmarshal(text, &event); err != nil {
		panic(err)
	}
	isSigned, _ := event.CheckSignature()
	fmt.Println(event.CheckID() && isSigned)
}
GO
mv program in_go
cargo_program "nostr@=0.45.6" <<'RUST'
use nostr::prelude::*;

fn main() {
    match Event::from_json(std::fs::read_to_string("event.json").unwrap()) {
        Ok(event) => println!("{}", event.verify().is_ok()),
        Err(error) => println!("{error}"),
    }
}
RUST
expect "nostr-tools 2.25.2" "$(node verify.mjs)" true
expect "go-nostr 0.52.3" "$(./in_go)" true
expect "nostr 0.45.6" "$(./program)" "empty tag at line 1 column 184"

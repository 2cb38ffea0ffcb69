#!/bin/sh
# jacquard-common encodes the parameters of a stream twice: the accounts that a client of a Jetstream asks for arrive with %253A in place
# of the colons, and a Jetstream knows no such DID.
. "$(dirname "$0")/common.sh"
needs cargo cc
cargo_program "jacquard-common@=0.12.2 --no-default-features --features std,websocket" "serde_json@1" "tokio@1 --features rt,net,time" <<'RUST'
use std::io::{BufRead, BufReader};

use jacquard_common::deps::fluent_uri::Uri;
use jacquard_common::jetstream::JetstreamParams;
use jacquard_common::xrpc::subscription::{SubscriptionClient, TungsteniteSubscriptionClient};

fn main() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let service = format!("ws://{}", listener.local_addr().unwrap());
    let asked = std::thread::spawn(move || {
        let mut line = String::new();
        BufReader::new(listener.accept().unwrap().0).read_line(&mut line).unwrap();
        line
    });
    let params = serde_json::json!({ "wantedDids": ["did:plc:ewvi7nxzyoun6zhxrhs64oiz"] });
    let params: JetstreamParams = serde_json::from_value(params).unwrap();
    let client = TungsteniteSubscriptionClient::from_base_uri(Uri::parse(&*service).unwrap().to_owned());
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    // The connection ends after the request.
    assert!(runtime.block_on(client.subscribe(&params)).is_err());
    println!("{}", asked.join().unwrap().split([' ', '?']).nth(2).unwrap());
}
RUST
expect "jacquard-common 0.12.2" "$(./program)" "wantedDids=did%253Aplc%253Aewvi7nxzyoun6zhxrhs64oiz"

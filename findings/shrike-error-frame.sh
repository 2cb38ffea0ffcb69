#!/bin/sh
# The header of an error frame is {"op": -1}: `t` names the type of a message, and an error has none. shrike asks for `t` there too, so it
# reports frames of servers that follow the specification as malformed, and their error, as FutureCursor, is lost.
. "$(dirname "$0")/common.sh"
needs cargo cc
cargo_program "shrike@=0.8.2 --no-default-features --features streaming" <<'RUST'
use shrike::streaming::parse_firehose_frame;

fn main() {
    let body = b"\xa1eerrorlFutureCursor";
    for header in [&b"\xa1bop\x20"[..], b"\xa2atf#errorbop\x20"] {
        println!("{}", parse_firehose_frame(&[header, body].concat()).unwrap_err());
    }
}
RUST
expect "shrike 0.8.2, without t" "$(./program | head -n 1)" "CBOR parse error: missing t in frame header"
expect "shrike 0.8.2, with t" "$(./program | tail -n 1)" "relay error frame: FutureCursor"

#!/bin/sh
# jacquard-common refuses a handle with a capital letter. Handles are compared without case: the specification has them put into lower
# case, and the interoperability files of the AT Protocol have such ones as valid.
. "$(dirname "$0")/common.sh"
needs cargo cc
cargo_program "jacquard-common@=0.12.2 --no-default-features --features std" <<'RUST'
use jacquard_common::types::string::Handle;

fn main() {
    let found = std::env::args().skip(1).map(|text| Handle::new(text.as_str()).is_ok().to_string());
    println!("{}", found.collect::<Vec<_>>().join(" "));
}
RUST
expect "jacquard-common 0.12.2, ada.example.com, Ada.example.com" "$(./program ada.example.com Ada.example.com)" "true false"

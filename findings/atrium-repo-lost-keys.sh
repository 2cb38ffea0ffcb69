#!/bin/sh
# atrium-repo loses keys that are inserted into a tree, without an error: three keys of the layers 1, 0 and 3, inserted in this
# order, leave two. In another order the same keys are all there.
. "$(dirname "$0")/common.sh"
needs cargo cc
cargo_program "atrium-repo@=0.2.0" "tokio@1 --features macros,rt" <<'RUST'
use atrium_repo::blockstore::MemoryBlockStore;
use atrium_repo::mst::Tree;
use atrium_repo::{Cid, Multihash};

/// Inserts the keys in this order, and prints which are there.
#[tokio::main(flavor = "current_thread")]
async fn main() {
    let value = Cid::new_v1(0x71, Multihash::wrap(0x12, &[1; 32]).unwrap());
    let keys: Vec<String> = std::env::args().skip(1).collect();
    let mut tree = Tree::create(MemoryBlockStore::new()).await.unwrap();
    for key in &keys {
        tree.add(&format!("com.example.record/{key}"), value).await.unwrap();
    }
    let mut found = Vec::new();
    for key in &keys {
        if tree.get(&format!("com.example.record/{key}")).await.unwrap().is_some() {
            found.push(key.as_str());
        }
    }
    println!("{}", found.join(" "));
}
RUST
expect "atrium-repo 0.2.0, 32, then 6, then 0" "$(./program 32 6 0)" "32 6 0"
expect "atrium-repo 0.2.0, 6, then 0, then 32" "$(./program 6 0 32)" "0 32"

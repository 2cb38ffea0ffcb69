#!/bin/sh
# `Verifier::verify` and `Signer::sign` of k256's Schnorr keys take the SHA-256 of a message as the message of BIP-340: a signature over
# the message itself, such as test vectors of BIP-340 and events of Nostr have, is rejected. `verify_raw` accepts it.
. "$(dirname "$0")/common.sh"
needs cargo cc
cargo_program "k256@=0.14.0 --features schnorr" <<'RUST'
use k256::schnorr::signature::Verifier;
use k256::schnorr::{Signature, VerifyingKey};

fn main() {
    let [key, message, signature] = [1, 2, 3].map(|at| bytes(&std::env::args().nth(at).unwrap()));
    let key = VerifyingKey::from_slice(&key).unwrap();
    let signature = Signature::try_from(&signature[..]).unwrap();
    println!("verify {}, verify_raw {}", key.verify(&message, &signature).is_ok(), key.verify_raw(&message, &signature).is_ok());
}

fn bytes(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}
RUST
expect "k256 0.14.0, a signature over 32 bytes 05" "$(./program 989c0b76cb563971fdc9bef31ec06c3560f3249d6ee9e5d83c57625596e05f6f \
    0505050505050505050505050505050505050505050505050505050505050505 \
    296902c25c4a9295bcaeb82dadcac23f27f1869aade1cc5d31c8d113d71e11c1bcf0347926eab3e811fcdc4963528ac9a1e1d6b98b66ddb22806871719424e5e)" \
    "verify false, verify_raw true"

//! Commit objects as their author pleases.

use codec::Cid;

use super::item::{Item, map};
use crate::keys::SigningKey;

/// A commit object without its signature.
pub(crate) fn unsigned(did: &str, rev: &str, data: &Cid) -> Item {
    map([
        ("did", Item::text(did)),
        ("rev", Item::text(rev)),
        ("data", Item::link(data)),
        ("prev", Item::Null),
        ("version", Item::Int(3)),
    ])
}

/// The same, signed as it stands.
pub(crate) fn sign(mut object: Item, key: &SigningKey) -> Item {
    let signature = key.sign(&object.encode());
    object.set("sig", Item::Bytes(signature.to_vec()));
    object
}

/// Puts what `change` makes of the signature of a signed object in its place.
pub(crate) fn change_signature(object: &mut Item, change: impl FnOnce([u8; 64]) -> Vec<u8>) {
    let sig = object.get("sig");
    let Item::Bytes(bytes) = sig else { unreachable!("a signed object has its signature") };
    *sig = Item::Bytes(change(bytes.as_slice().try_into().expect("64 bytes")));
}

/// The signature as ASN.1 has it: SEQUENCE { INTEGER r, INTEGER s }.
pub(crate) fn der(signature: &[u8]) -> Vec<u8> {
    let (r, s) = signature.split_at(32);
    let body = [der_integer(r), der_integer(s)].concat();
    [&[0x30, body.len() as u8], &body[..]].concat()
}

fn der_integer(number: &[u8]) -> Vec<u8> {
    let start = number.iter().position(|byte| *byte != 0).unwrap_or(31);
    let sign: &[u8] = if number[start] < 0x80 { &[] } else { &[0] };
    let digits = [sign, &number[start..]].concat();
    [&[0x02, digits.len() as u8], &digits[..]].concat()
}

//! Verifies BIP-340 signatures of Nostr events.

use runner_shell::schnorr::Peer;
use runner_shell::{BoxError, Variant};
use secp256k1::{XOnlyPublicKey, schnorr};
use serde::Deserialize;

pub(crate) struct Libsecp256k1;

/// The id, the author and the signature of an event.
pub(crate) struct Event {
    id: [u8; 32],
    pubkey: [u8; 32],
    sig: [u8; 64],
}

impl Peer for Libsecp256k1 {
    type Event = Event;

    const VARIANTS: &'static [Variant] = &[Variant { name: "verify", checks: &[] }];

    fn parse(line: &str) -> Result<Event, BoxError> {
        let Spelled { id, pubkey, sig } = serde_json::from_str(line)?;
        Ok(Event { id: unhex(id)?, pubkey: unhex(pubkey)?, sig: unhex(sig)? })
    }

    fn verify(event: &Event) -> Result<bool, BoxError> {
        let key = XOnlyPublicKey::from_byte_array(event.pubkey)?;
        let signature = schnorr::Signature::from_byte_array(event.sig);
        Ok(schnorr::verify(&signature, &event.id, &key).is_ok())
    }
}

/// The same in hexadecimal, as in JSON.
#[derive(Deserialize)]
struct Spelled<'a> {
    id: &'a str,
    pubkey: &'a str,
    sig: &'a str,
}

fn unhex<const N: usize>(text: &str) -> Result<[u8; N], BoxError> {
    let mut bytes = [0; N];
    let digits = text.as_bytes();
    if digits.len() != 2 * N {
        return Err("a number has two digits a byte".into());
    }
    for (byte, pair) in bytes.iter_mut().zip(digits.chunks_exact(2)) {
        *byte = u8::from_str_radix(str::from_utf8(pair)?, 16)?;
    }
    Ok(bytes)
}

//! Verification of ids and signatures, one event at a time or in batches.

use crypto::SignatureFault;
use crypto::schnorr::{self, KeyRef, SignatureCheck, XOnlyKey};
use kernels::sha256;

use crate::Event;
use crate::canonical::{self, ControlChars};

/// Why a well-formed event is invalid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventFault {
    /// The id is not the SHA-256 of the canonical form.
    #[error("the id is not the hash of the event")]
    Id,
    /// The signature over the id is not the author's.
    #[error("{0}")]
    Signature(SignatureFault),
}

impl Event<'_> {
    /// Verifies the id and the signature.
    ///
    /// # Errors
    /// If either is wrong.
    pub fn verify(&self) -> Result<(), EventFault> {
        self.verify_in(&mut Vec::new())
    }

    /// Verifies as [`verify`](Self::verify) does; `scratch` is reused memory.
    ///
    /// # Errors
    /// If either is wrong.
    pub fn verify_in(&self, scratch: &mut Vec<u8>) -> Result<(), EventFault> {
        if canonical::id(self, ControlChars::Verbatim, scratch) != self.id {
            return Err(EventFault::Id);
        }
        self.verify_signature()
    }

    /// Verifies the signature over the id, but not the id.
    ///
    /// # Errors
    /// If the author did not sign the id.
    pub fn verify_signature(&self) -> Result<(), EventFault> {
        let key = XOnlyKey::from_bytes(&self.pubkey);
        let key = key.map_err(|_| EventFault::Signature(SignatureFault::Key))?;
        key.verify(&self.id, &self.sig).map_err(EventFault::Signature)
    }
}

/// Verifies many events; the result of an event has the index of the event.
///
/// Every result is that of [`Event::verify`]. Ids are hashed and signatures verified many at a time, in SIMD lanes
/// where the CPU has them, in groups of 512 events that bound the memory.
///
/// ```
/// # use wireproof::nostr::Arena;
/// # use wireproof::nostr::{example, formats::Format, verify_many, EventFault, Limits};
/// # let arena = Arena::new();
/// # let event = Format::Json.decode(example::JSON.as_bytes(), &arena, &Limits::default())?;
/// let mut forged = event;
/// forged.kind = 7;
/// assert_eq!(verify_many(&[event, forged]), [Ok(()), Err(EventFault::Id)]);
/// # Ok::<(), wireproof::nostr::DecodeError>(())
/// ```
pub fn verify_many(events: &[Event<'_>]) -> Vec<Result<(), EventFault>> {
    let mut results = Vec::with_capacity(events.len());
    let mut scratch = Scratch::default();
    for group in events.chunks(GROUP_EVENTS) {
        scratch.verify(group, &mut results);
    }
    results
}

/// Memory that is reused from group to group.
#[derive(Default)]
struct Scratch {
    canonical: Vec<u8>,
    // The end of the canonical form of each event in `canonical`.
    ends: Vec<usize>,
    ids: Vec<[u8; 32]>,
}

impl Scratch {
    fn verify(&mut self, group: &[Event<'_>], results: &mut Vec<Result<(), EventFault>>) {
        self.hash(group);
        let checks: Vec<SignatureCheck<'_>> = group.iter().map(check).collect();
        let signatures = schnorr::verify_many(&checks);
        let result = |((event, id), signature): ((&Event<'_>, &[u8; 32]), _)| {
            if event.id != *id { Err(EventFault::Id) } else { signature }
        };
        let signatures = signatures.into_iter().map(|result| result.map_err(EventFault::Signature));
        results.extend(group.iter().zip(&self.ids).zip(signatures).map(result));
    }

    /// Computes the ids of a group.
    fn hash(&mut self, group: &[Event<'_>]) {
        self.canonical.clear();
        self.ends.clear();
        for event in group {
            canonical::write(event, ControlChars::Verbatim, &mut self.canonical);
            self.ends.push(self.canonical.len());
        }
        let mut start = 0;
        let message = |end: &usize| &self.canonical[std::mem::replace(&mut start, *end)..*end];
        let messages: Vec<&[u8]> = self.ends.iter().map(message).collect();
        self.ids.resize(group.len(), [0; 32]);
        sha256::digest_many_into(&messages, &mut self.ids);
    }
}

fn check<'e>(event: &'e Event<'_>) -> SignatureCheck<'e> {
    SignatureCheck { message: &event.id, signature: &event.sig, key: KeyRef::Bytes(&event.pubkey) }
}

/// Number of events whose canonical forms are in memory together.
const GROUP_EVENTS: usize = 512;

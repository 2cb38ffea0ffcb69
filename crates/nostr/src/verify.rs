//! Is this event its author's, are these many?

use crypto::SignatureFault;
use crypto::schnorr::{self, KeyRef, SignatureCheck, XOnlyKey};
use kernels::sha256;

use crate::Event;
use crate::canonical::{self, Controls};

/// Why an event is refused that is well formed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EventFault {
    /// The id is not the SHA-256 of the canonical form.
    #[error("the id is not that of the event")]
    Id,
    /// The signature over the id is not the author's; the fault names the rule.
    #[error("{0}")]
    Signature(SignatureFault),
}

impl Event<'_> {
    /// Checks the id, and that the author signed it.
    ///
    /// # Errors
    /// If either is wrong.
    pub fn verify(&self) -> Result<(), EventFault> {
        self.verify_in(&mut Vec::new())
    }

    /// As [`verify`](Self::verify), with memory that the caller keeps.
    ///
    /// # Errors
    /// If either is wrong.
    pub fn verify_in(&self, scratch: &mut Vec<u8>) -> Result<(), EventFault> {
        if canonical::id(self, Controls::Verbatim, scratch) != self.id {
            return Err(EventFault::Id);
        }
        self.verify_signature()
    }

    /// Checks that the author signed the id, whatever it is the id of.
    ///
    /// # Errors
    /// If not.
    pub fn verify_signature(&self) -> Result<(), EventFault> {
        let key = XOnlyKey::from_bytes(&self.pubkey);
        let key = key.map_err(|_| EventFault::Signature(SignatureFault::Key))?;
        key.verify(&self.id, &self.sig).map_err(EventFault::Signature)
    }
}

/// Checks the ids and signatures of many events; the verdict of an event has the event's index.
///
/// Every verdict is that of [`Event::verify`]. Ids are hashed and signatures verified many at a time, in lanes
/// where the machine has them; memory is bounded by the events of one group of 512.
///
/// ```
/// # use bumpalo::Bump;
/// # use wireproof_nostr::{example, formats::Format, verify_many, EventFault, Limits};
/// # let arena = Bump::new();
/// # let event = Format::Json.decode(example::JSON.as_bytes(), &arena, &Limits::default())?;
/// let mut forged = event;
/// forged.kind = 7;
/// assert_eq!(verify_many(&[event, forged]), [Ok(()), Err(EventFault::Id)]);
/// # Ok::<(), wireproof_nostr::DecodeError>(())
/// ```
pub fn verify_many(events: &[Event<'_>]) -> Vec<Result<(), EventFault>> {
    let mut verdicts = Vec::with_capacity(events.len());
    let mut scratch = Scratch::default();
    for group in events.chunks(GROUP_EVENTS) {
        scratch.judge(group, &mut verdicts);
    }
    verdicts
}

/// Memory that the groups use one after the other.
#[derive(Default)]
struct Scratch {
    canonical: Vec<u8>,
    // Where the canonical form of each event ends in `canonical`.
    ends: Vec<usize>,
    ids: Vec<[u8; 32]>,
}

impl Scratch {
    fn judge(&mut self, group: &[Event<'_>], verdicts: &mut Vec<Result<(), EventFault>>) {
        self.hash(group);
        let checks: Vec<SignatureCheck<'_>> = group.iter().map(check).collect();
        let signatures = schnorr::verify_many(&checks);
        let verdict = |((event, id), signature): ((&Event<'_>, &[u8; 32]), _)| {
            if event.id != *id { Err(EventFault::Id) } else { signature }
        };
        let signatures = signatures.into_iter().map(|it| it.map_err(EventFault::Signature));
        verdicts.extend(group.iter().zip(&self.ids).zip(signatures).map(verdict));
    }

    /// The ids that the events of a group must have.
    fn hash(&mut self, group: &[Event<'_>]) {
        self.canonical.clear();
        self.ends.clear();
        for event in group {
            canonical::write(event, Controls::Verbatim, &mut self.canonical);
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

/// Events whose canonical forms are in memory together.
const GROUP_EVENTS: usize = 512;

//! What is costly to find out of an event, and depends on neither state nor clock.

use atproto::event::Commit;
use atproto::mst::inversion::Inverter;
use crypto::{
    CompressedKey, KeyCache, KeyRef, SignatureCheck, SignatureVerdict, SignedData,
    verify_many_cached,
};

use super::claim::{Claim, Opened};
use super::policy::Policy;
use super::proof::{self, Undone};
use super::rejection::SyncRejection;

/// What was found of an event before anyone asked.
#[derive(Clone, Debug, Default)]
pub(super) struct Found<'a> {
    /// The commit object, if it is what the event says.
    pub(super) opened: Option<Result<Opened<'a>, SyncRejection<'a>>>,
    /// Whether its signature is the account's.
    pub(super) signature: Option<SignatureVerdict>,
    /// The tree before the operations.
    pub(super) undone: Option<Undone>,
}

/// Finds what is asked for, unless it was found before.
pub(super) struct Evidence<'a, 'j> {
    pub(super) policy: &'j Policy,
    pub(super) cache: &'j mut KeyCache,
    pub(super) inverter: &'j mut Inverter,
    pub(super) found: Found<'a>,
}

impl<'a> Evidence<'a, '_> {
    pub(super) fn open(&mut self, claim: &Claim<'a>) -> Result<Opened<'a>, SyncRejection<'a>> {
        self.found.opened.take().unwrap_or_else(|| claim.open(self.policy))
    }

    pub(super) fn verify(&mut self, opened: &Opened<'a>, key: CompressedKey) -> SignatureVerdict {
        self.found.signature.take().unwrap_or_else(|| {
            let signed = SignedData::Digest(opened.object.signing_bytes().digest());
            let check = SignatureCheck {
                signed,
                signature: opened.object.sig,
                key: KeyRef::Compressed(key),
            };
            let mut verdict = [Ok(())];
            verify_many_cached(&[check], self.cache, &mut verdict);
            verdict[0]
        })
    }

    pub(super) fn undo(&mut self, event: &'a Commit<'a>, opened: &Opened<'a>) -> Undone {
        let data = opened.object.data;
        self.found.undone.take().unwrap_or_else(|| proof::undo(event, data, self.inverter))
    }
}

//! Verifies commits by `validate_v1_1`, which hashes no block, verifies the signature and undoes the operations.
//!
//! It stores no state of accounts, does not compare a commit with the previous one, does not check the clock, and has no
//! call for `#sync`.

use std::collections::HashMap;
use std::time::SystemTime;

use jacquard_api::com_atproto::sync::subscribe_repos::SubscribeReposMessage as Message;
use jacquard_common::types::crypto::PublicKey;
use jacquard_repo::commit::firehose::{FirehoseCommit, validate_v1_1};
use runner_shell::commit::{Outcome, Peer};
use runner_shell::{BoxError, Variant};

use crate::shared::{Runtime, parse_key};

pub(crate) struct Jacquard {
    runtime: Runtime,
    keys: HashMap<String, PublicKey<'static>>,
}

impl Peer for Jacquard {
    const VARIANTS: &'static [Variant] = &[Variant { name: "full", checks: CHECKS }];

    fn start(keys: &[(String, String)], _: Option<SystemTime>) -> Result<Self, BoxError> {
        let keys = keys.iter().map(|(did, key)| Ok((did.clone(), parse_key(key)?)));
        Ok(Jacquard { runtime: Runtime::start(), keys: keys.collect::<Result<_, BoxError>>()? })
    }

    fn reset(&mut self) {}

    fn has_state(&mut self, _: &[u8]) -> Option<bool> {
        None
    }

    fn verify(&mut self, frame: &[u8]) -> Outcome {
        match Message::<&str>::decode_framed(frame) {
            Ok(Message::Commit(commit)) => {
                Outcome::of_commit(commit.ops.len(), self.verify_commit(&commit))
            }
            Ok(other) => {
                std::hint::black_box(other);
                Outcome::Other(Ok(()))
            }
            Err(error) => Outcome::Rejected(error.into()),
        }
    }
}

/// No `inversion`: the operations are inverted and the root compared, but one that cannot be inverted is skipped, such as
/// a delete of a key that is present. No `event-fields`: the DID is compared and the
/// commit is found by its CID, `rev` is not looked at. No `op-records`: the block of a record may be
/// missing. No `duplicate-keys`, `utf8` and `only-tag-42`: fields of nodes that it does not know are skipped.
pub(crate) const CHECKS: &[&str] = &["trailing-bytes", "depth-bound"];

impl Jacquard {
    fn verify_commit(&self, commit: &FirehoseCommit<&str>) -> Result<(), BoxError> {
        let key = self.keys.get(commit.repo.as_ref()).ok_or("an account whose key is not known")?;
        self.runtime.run(validate_v1_1(commit, key))?;
        Ok(())
    }
}

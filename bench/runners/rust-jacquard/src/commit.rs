//! How does jacquard judge commits? By `validate_v1_1`, which hashes no block, verifies the signature and
//! undoes the operations.
//!
//! It keeps nothing of an account and compares a commit with none before it, and has nothing for
//! `#sync`. The clock is nobody's either.

use std::collections::HashMap;
use std::time::SystemTime;

use jacquard_api::com_atproto::sync::subscribe_repos::SubscribeReposMessage as Message;
use jacquard_common::types::crypto::PublicKey;
use jacquard_repo::commit::firehose::{FirehoseCommit, validate_v1_1};
use runner_shell::commit::{Peer, Verdict};
use runner_shell::{Refusal, Variant};

use crate::repo::parse_key;
use crate::runtime::Runtime;

pub(crate) struct Jacquard {
    runtime: Runtime,
    keys: HashMap<String, PublicKey<'static>>,
}

impl Peer for Jacquard {
    const VARIANTS: &'static [Variant] = &[Variant { name: "full", checks: CHECKS }];

    fn start(keys: &[(String, String)], _: Option<SystemTime>) -> Result<Self, Refusal> {
        let keys = keys.iter().map(|(did, key)| Ok((did.clone(), parse_key(key)?)));
        Ok(Jacquard { runtime: Runtime::start(), keys: keys.collect::<Result<_, Refusal>>()? })
    }

    fn forget(&mut self) {}

    fn judge(&mut self, frame: &[u8]) -> Verdict {
        match Message::<&str>::decode_framed(frame) {
            Ok(Message::Commit(commit)) => {
                Verdict::of_commit(commit.ops.len(), self.judge_commit(&commit))
            }
            Ok(other) => {
                std::hint::black_box(other);
                Verdict::Other(Ok(()))
            }
            Err(error) => Verdict::Refused(error.into()),
        }
    }
}

/// No `inversion`: the operations are undone and the root compared, but one that cannot be undone is
/// passed over, such as a delete of what is still there. No `event-fields`: the DID is compared and the
/// commit is found by its CID, `rev` is not looked at. No `op-records`: the block of a record may be
/// missing.
pub(crate) const CHECKS: &[&str] =
    &["duplicate-keys", "utf8", "only-tag-42", "trailing-bytes", "depth-bound"];

impl Jacquard {
    fn judge_commit(&self, commit: &FirehoseCommit<&str>) -> Result<(), Refusal> {
        let key = self.keys.get(commit.repo.as_ref()).ok_or("an account whose key is not known")?;
        self.runtime.run(validate_v1_1(commit, key))?;
        Ok(())
    }
}

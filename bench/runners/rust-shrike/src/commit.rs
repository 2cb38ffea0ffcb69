//! Verifies commits by shrike's `Verifier`, with its own in-memory store and given keys, so no call fetches
//! or waits.
//!
//! An account's first commit is not undone: the verifier does so only if it has the previous state.
//! [`ByDefault`] has the verifier's default options; [`Strict`] also refuses commits that they accept:
//! operations that do not lead back to `prevData` and commits without one. Both cost the same.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use runner_shell::commit::{Outcome, Peer};
use runner_shell::{BoxError, Variant, poll_once};
use shrike::crypto::parse_did_key;
use shrike::identity::{Identity, IdentityError};
use shrike::sync::raw::parse_raw_sync_frame;
use shrike::sync::{
    ChainState, IdentityResolver, LegacyCommitPolicy, MemStateStore, RawCommit, RawSync,
    RawSyncError, RawSyncEvent, Verifier, VerifierError, VerifierOptions, decode_sync_commit,
};
use shrike::syntax::Did;

pub(crate) type Strict = Judge<true>;
pub(crate) type ByDefault = Judge<false>;

pub(crate) struct Judge<const STRICT: bool> {
    keys: Arc<Keys>,
    now: Option<SystemTime>,
    verifier: Verifier,
}

impl<const STRICT: bool> Peer for Judge<STRICT> {
    const VARIANTS: &'static [Variant] =
        &[Variant { name: "full", checks: if STRICT { CHECKS } else { BY_DEFAULT } }];

    fn start(keys: &[(String, String)], now: Option<SystemTime>) -> Result<Self, BoxError> {
        let keys = Arc::new(Keys::parse(keys)?);
        let verifier = verifier::<STRICT>(&keys, now);
        Ok(Judge { keys, now, verifier })
    }

    fn time(frame: &[u8]) -> Option<String> {
        match parse_raw_sync_frame(frame).ok()? {
            RawSyncEvent::Commit(commit) => Some(commit.time),
            RawSyncEvent::Sync(sync) => Some(sync.time),
            RawSyncEvent::Account(account) => Some(account.time),
            RawSyncEvent::Identity(identity) => Some(identity.time),
            RawSyncEvent::Info => None,
        }
    }

    fn reset(&mut self) {
        self.verifier = verifier::<STRICT>(&self.keys, self.now);
    }

    fn has_state(&mut self, frame: &[u8]) -> Option<bool> {
        let Ok(RawSyncEvent::Commit(commit)) = parse_raw_sync_frame(frame) else {
            return Some(false);
        };
        let store = self.verifier.state_store();
        Some(
            poll_once(store.load_chain(&commit.repo))
                .is_ok_and(|chain| matches!(chain, Ok(Some(_)))),
        )
    }

    fn verify(&mut self, frame: &[u8]) -> Outcome {
        match parse_raw_sync_frame(frame) {
            Ok(RawSyncEvent::Commit(commit)) => {
                Outcome::of_commit(commit.ops.len(), self.verify_commit(&commit))
            }
            Ok(RawSyncEvent::Sync(sync)) => Outcome::Other(self.verify_sync(&sync)),
            Ok(_) | Err(RawSyncError::UnknownType(_)) => Outcome::Other(Ok(())),
            Err(error) => Outcome::Rejected(error.into()),
        }
    }
}

/// No `op-records`: where a record's block is missing, the verifier returns a record without bytes. No
/// `chain`: `prevData` is compared with the previous commit, `since` is not checked.
const CHECKS: &[&str] = &[
    "cid-sha256",
    "key-order",
    "duplicate-keys",
    "minimal-heads",
    "utf8",
    "indefinite-lengths",
    "only-tag-42",
    "link-shape",
    "trailing-bytes",
    "depth-bound",
    "low-s",
    "event-fields",
    "clock",
    "inversion",
];
pub(crate) const BY_DEFAULT: &[&str] = CHECKS.split_last().unwrap().1;

fn verifier<const STRICT: bool>(keys: &Arc<Keys>, now: Option<SystemTime>) -> Verifier {
    let mut options = VerifierOptions::new(Arc::new(MemStateStore::new()), Arc::clone(keys) as _);
    if STRICT {
        options = options
            .with_lenient_inversion(false)
            .with_legacy_commit_policy(LegacyCommitPolicy::Reject);
    }
    if let Some(now) = now {
        options = options.with_now(move || now);
    }
    Verifier::new(options)
}

impl<const STRICT: bool> Judge<STRICT> {
    fn verify_commit(&self, commit: &RawCommit) -> Result<(), BoxError> {
        match poll_once(self.verifier.verify_commit(commit))?? {
            Some(ops) => {
                std::hint::black_box(ops);
                Ok(())
            }
            None => Err(DROPPED.into()),
        }
    }

    /// Where the verifier would fetch the repository, the commit that announces it is verified as the
    /// verifier does without fetching, and believed.
    fn verify_sync(&self, sync: &RawSync) -> Result<(), BoxError> {
        let dropped = || self.verifier.stats().rev_replays_dropped;
        let dropped_before = dropped();
        match poll_once(self.verifier.verify_sync(sync))? {
            Ok(_) if dropped() > dropped_before => Err(DROPPED.into()),
            Ok(_) => Ok(()),
            Err(VerifierError::ResyncFailed { .. }) => self.believe(sync),
            Err(error) => Err(error.into()),
        }
    }

    fn believe(&self, sync: &RawSync) -> Result<(), BoxError> {
        let commit = decode_sync_commit(&sync.did, &sync.rev, &sync.blocks)?;
        if commit.did != sync.did || commit.rev.to_string() != sync.rev {
            return Err("the commit is another".into());
        }
        let identity = self.keys.0.get(&sync.did).ok_or("an account whose key is not known")?;
        commit.verify(identity.signing_key().ok_or("an account without a key")?)?;
        let state = ChainState { rev: sync.rev.clone(), data: commit.data };
        Ok(poll_once(self.verifier.state_store().save_chain(&sync.did, state))??)
    }
}

const DROPPED: &str = "dropped as a repetition";

/// The accounts, resolved.
struct Keys(HashMap<Did, Arc<Identity>>);

impl Keys {
    fn parse(keys: &[(String, String)]) -> Result<Self, BoxError> {
        let resolved = keys.iter().map(|(did, key)| {
            let did = Did::try_from(did.as_str())?;
            let keys = HashMap::from([("#atproto".to_owned(), parse_did_key(key)?)]);
            let identity =
                Identity { did: did.clone(), handle: None, keys, services: HashMap::new() };
            Ok((did, Arc::new(identity)))
        });
        resolved.collect::<Result<_, BoxError>>().map(Keys)
    }
}

#[async_trait]
impl IdentityResolver for Keys {
    async fn lookup_did(&self, did: &Did) -> Result<Arc<Identity>, IdentityError> {
        let known = self.0.get(did).cloned();
        known.ok_or_else(|| IdentityError::NotFound(did.as_str().to_owned()))
    }

    async fn purge(&self, _: &Did) -> Result<(), IdentityError> {
        Ok(())
    }
}

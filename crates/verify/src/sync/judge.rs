//! The judge: reads frames and settles them, one alone or many with what is costly gathered.

use atproto::event::{Decoder, Event, FrameError};
use atproto::mst::inversion::Inverter;
use crypto::KeyCache;

use super::admission::Now;
use super::batch;
use super::claim::{Claim, Message};
use super::evidence::{Evidence, Found};
use super::keys::KeySource;
use super::outcome::{Judged, Outcome};
use super::policy::Policy;
use super::rejection::SyncRejection;
use super::road;
use super::state::{AccountState, ChainState};

/// Judges frames, and keeps its memory for the next ones.
///
/// A single frame is judged as the [table of checks](super#the-table-of-checks) says, step by step. A
/// batch gets the verdicts that its frames would get one after the other, for a fraction of the cost:
/// hashes, signatures and tree nodes of all frames go through the lanes together.
#[derive(Debug)]
pub struct Judge {
    pub(super) policy: Policy,
    pub(super) decoder: Decoder,
    pub(super) cache: KeyCache,
    pub(super) inverter: Inverter,
}

impl Judge {
    /// A judge under `policy`, with a cache for the keys that come again.
    pub fn new(policy: Policy, cache: KeyCache) -> Self {
        Self { policy, decoder: Decoder::new(policy.decoding()), cache, inverter: Inverter::new() }
    }

    /// The policy.
    pub fn policy(&self) -> &Policy {
        &self.policy
    }

    /// The cache of keys.
    pub fn cache(&self) -> &KeyCache {
        &self.cache
    }

    /// Judges one frame at `now_micros` since 1970. The verdict lives until the next call.
    ///
    /// # Errors
    /// If the account's state cannot be loaded or stored; nothing is judged then.
    pub fn judge<'j, S: ChainState>(
        &'j mut self,
        frame: &'j [u8],
        keys: &impl KeySource,
        state: &mut S,
        now_micros: u64,
    ) -> Result<Judged<'j>, S::Error> {
        let Self { policy, decoder, cache, inverter } = self;
        let result = &decoder.decode_batch(&[frame])[0];
        let claim = match read(result, policy) {
            Ok(claim) => claim,
            Err(outcome) => return Ok(Judged { event: result.as_ref().ok(), outcome }),
        };
        let key = keys.key(claim.did);
        let mut account = [AccountState::UNKNOWN];
        state.load_many(&[claim.did], &mut account)?;
        let [mut account] = account;
        let now = Now::new(now_micros, policy);
        let evidence = Evidence { policy, cache, inverter, found: Found::default() };
        let outcome = road::judge(&claim, key, &mut account, now, evidence);
        if outcome.is_accepted() {
            state.store_many(&[(claim.did, account)])?;
        }
        Ok(Judged { event: result.as_ref().ok(), outcome })
    }

    /// Judges frames at `now_micros` since 1970, each as if those before it had been judged alone.
    /// The verdicts have the order of the frames and live until the next call.
    ///
    /// Events of one account must stand in their order; a refused one leaves its account as it was.
    /// A hundred frames or two fill the lanes; a thousand no longer fit the cache.
    ///
    /// # Errors
    /// If the accounts' states cannot be loaded or stored; nothing is judged then.
    pub fn judge_batch<'j, S: ChainState>(
        &'j mut self,
        frames: &[&'j [u8]],
        keys: &impl KeySource,
        state: &mut S,
        now_micros: u64,
    ) -> Result<Vec<Judged<'j>>, S::Error> {
        batch::judge(self, frames, keys, state, now_micros)
    }
}

/// What a frame claims, or what becomes of it without a claim. Row 1, and all that
/// [`Claim::read`] asks.
pub(super) fn read<'a>(
    event: &'a Result<Event<'a>, FrameError>,
    policy: &Policy,
) -> Result<Claim<'a>, Outcome<'a>> {
    match event {
        Err(error) => Err(SyncRejection::from(*error).into()),
        Ok(event) => match Message::of(event) {
            None => Err(Outcome::Unjudged(event)),
            Some(message) => Ok(Claim::read(message, policy)?),
        },
    }
}

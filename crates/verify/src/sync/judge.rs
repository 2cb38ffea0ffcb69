//! The judge: one frame at a time, or a batch whose hashes, signatures and tree nodes are computed
//! together.

use std::fmt;

use atproto::commit::digest_many;
use atproto::event::{BlockIndex, Commit, Decoder, Event, Frame, FrameError};
use atproto::mst::inversion::{Inversion, Inverter, RecordOp};
use codec::Cid;
use crypto::{KeyCache, KeyRef, SignatureCheck, SignedData, verify_many_cached};

use super::accounts::{AccountKey, BatchAccounts, KeySource};
use super::checks::{
    Claim, LazyChecks, Message, Precomputed, check_account, may_need_inversion, read_claim,
    run_checks,
};
use super::outcome::{Judged, Outcome};
use super::policy::{FutureWindow, Policy};
use super::rejection::SyncRejection;
use super::state::{AccountState, ChainState, random_seed};

/// Judges frames of `com.atproto.sync.subscribeRepos`, and keeps its memory for the next ones.
///
/// A single frame goes through the [table of checks](super#the-table-of-checks) step by step. A batch
/// gets the verdicts that its frames would get one after the other, at a fraction of the cost: hashes,
/// signatures and tree nodes of all frames share the SIMD lanes.
///
/// ```
/// use wireproof::verify::sync::{Judge, MemoryState, Outcome};
///
/// let (mut judge, mut state) = (Judge::default(), MemoryState::default());
/// let (keys, now_micros) = (|_did: &str| None, 1_782_864_000_000_000);
/// let verdict = judge.judge(b"not a frame", &keys, &mut state, now_micros)?;
/// assert!(matches!(verdict.outcome, Outcome::Rejected(why) if why.code() == "frame/cbor"));
/// # Ok::<(), std::convert::Infallible>(())
/// ```
#[derive(Debug)]
pub struct Judge {
    policy: Policy,
    decoder: Decoder,
    cache: KeyCache,
    inverter: Inverter,
}

impl Default for Judge {
    /// A judge under the strict policy, with 64 MiB for keys and a seed of its own.
    fn default() -> Self {
        Self::builder().build()
    }
}

impl Judge {
    /// A judge under `policy` with this cache of keys.
    pub fn new(policy: Policy, cache: KeyCache) -> Self {
        Self { policy, decoder: Decoder::new(policy.decoding()), cache, inverter: Inverter::new() }
    }

    /// The settings of a judge, all with defaults.
    ///
    /// ```
    /// use wireproof::verify::sync::{Judge, Policy};
    ///
    /// let mut policy = Policy::default();
    /// policy.accept_any_time = true;
    /// let judge = Judge::builder().policy(policy).key_cache_bytes(256 << 20).build();
    /// assert!(judge.policy().accept_any_time);
    /// ```
    pub fn builder() -> JudgeBuilder {
        JudgeBuilder { policy: Policy::default(), key_cache_bytes: KEY_CACHE_BYTES, seed: None }
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
        let claim = match read_claim(result, policy) {
            Ok(claim) => claim,
            Err(outcome) => return Ok(Judged { event: result.as_ref().ok(), outcome, key: None }),
        };
        let key = keys.key(claim.did);
        let mut account = [AccountState::UNKNOWN];
        state.load_many(&[claim.did], &mut account)?;
        let window = FutureWindow::new(now_micros, policy);
        let mut account = account[0].within(window);
        let lazy = LazyChecks { policy, cache, inverter, precomputed: Precomputed::default() };
        let outcome = run_checks(&claim, key, &mut account, window, lazy);
        if outcome.is_accepted() {
            state.store_many(&[(claim.did, account)])?;
        }
        let key = key.known().filter(|_| outcome.is_accepted());
        Ok(Judged { event: result.as_ref().ok(), outcome, key })
    }

    /// Judges frames at `now_micros` since 1970, as if every earlier frame had been judged alone.
    /// The verdicts have the order of the frames and live until the next call.
    ///
    /// Events of one account must be in stream order; a rejected one leaves its account unchanged.
    /// 100 to 200 frames fill the SIMD lanes; 1,000 no longer fit the CPU cache.
    ///
    /// # Errors
    /// If the accounts' states cannot be loaded or stored; nothing is judged then.
    pub fn judge_batch<'j, S: ChainState>(
        &'j mut self,
        frames: &[impl Into<Frame<'j>> + Copy],
        keys: &impl KeySource,
        state: &mut S,
        now_micros: u64,
    ) -> Result<Vec<Judged<'j>>, S::Error> {
        let Self { policy, decoder, cache, inverter } = self;
        let window = FutureWindow::new(now_micros, policy);
        let (mut judged, claims) = read_all(decoder.decode_batch(frames), policy);
        let dids: Vec<&str> = claims.iter().map(|(_, claim)| claim.did).collect();
        let (mut accounts, numbers) = BatchAccounts::load(&dids, keys, state, window)?;
        let mut cases: Vec<Case<'_>> = claims.into_iter().zip(numbers).map(Case::new).collect();
        for tile in cases.chunks_mut(TILE_LEN) {
            precompute(tile, &accounts, window, policy, cache, inverter);
        }
        for Case { claim, account: number, frame, precomputed } in cases {
            let lazy = LazyChecks { policy, cache, inverter, precomputed };
            let (account, key) = accounts.get_mut(number);
            let outcome = run_checks(&claim, key, account, window, lazy);
            if outcome.is_accepted() {
                accounts.mark_changed(number);
                judged[frame].key = key.known();
            }
            judged[frame].outcome = outcome;
        }
        accounts.store(state)?;
        Ok(judged)
    }
}

/// The settings of a [`Judge`].
#[derive(Clone)]
pub struct JudgeBuilder {
    policy: Policy,
    key_cache_bytes: usize,
    seed: Option<[u8; 16]>,
}

impl JudgeBuilder {
    /// The limits and leniencies. Default: strict.
    #[must_use]
    pub fn policy(self, policy: Policy) -> Self {
        Self { policy, ..self }
    }

    /// Size of the cache of keys in bytes. Default: 64 MiB, some 47,000 keys.
    #[must_use]
    pub fn key_cache_bytes(self, key_cache_bytes: usize) -> Self {
        Self { key_cache_bytes, ..self }
    }

    /// Seed of the cache's hash table, to be kept secret from those who choose keys. Default: a random
    /// one of this process ([`RandomState`](std::hash::RandomState)).
    ///
    /// It places keys in the table and never changes a verdict, which is why a default may be random
    /// in a crate that reads no clock, file or environment.
    #[must_use]
    pub fn seed(self, seed: [u8; 16]) -> Self {
        Self { seed: Some(seed), ..self }
    }

    /// The judge.
    pub fn build(self) -> Judge {
        let seed = self.seed.unwrap_or_else(random_seed);
        Judge::new(self.policy, KeyCache::new(self.key_cache_bytes, seed))
    }
}

impl fmt::Debug for JudgeBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { policy, key_cache_bytes, seed: _ } = self;
        f.debug_struct("JudgeBuilder")
            .field("policy", policy)
            .field("key_cache_bytes", key_cache_bytes)
            .finish_non_exhaustive()
    }
}

/// A claim of a batch on its way to a verdict.
///
/// Precomputed data does not depend on the state that earlier frames of the batch leave: a claim
/// that [`check_account`] turns away before the batch is turned away by every later state as well, so
/// nothing is computed for it.
struct Case<'a> {
    claim: Claim<'a>,
    /// The index of its account in [`BatchAccounts`].
    account: usize,
    /// The index of its frame.
    frame: usize,
    precomputed: Precomputed<'a>,
}

impl<'a> Case<'a> {
    fn new(((frame, claim), account): ((usize, Claim<'a>), usize)) -> Self {
        Self { claim, account, frame, precomputed: Precomputed::default() }
    }

    /// The commit whose operations have to be undone, and the root of the tree to do it in.
    fn to_invert(&self, policy: &Policy) -> Option<(&'a Commit<'a>, Cid)> {
        match (self.claim.message, &self.precomputed) {
            (
                Message::Commit(event),
                Precomputed { opened: Some(Ok(opened)), signature: Some(Ok(())), .. },
            ) if may_need_inversion(event, policy) => Some((event, opened.object.data)),
            _ => None,
        }
    }
}

/// Splits events into decided ones, whose outcome is known at once, and claims, with the indices of their
/// frames.
fn read_all<'a>(
    events: &'a [Result<Event<'a>, FrameError>],
    policy: &Policy,
) -> (Vec<Judged<'a>>, Vec<(usize, Claim<'a>)>) {
    let mut claims = Vec::with_capacity(events.len());
    let judge = |(frame, result): (usize, &'a Result<Event<'a>, FrameError>)| {
        let outcome = match read_claim(result, policy) {
            Err(outcome) => outcome,
            Ok(claim) => {
                claims.push((frame, claim));
                // Replaced when its case is judged.
                Outcome::Rejected(SyncRejection::NoKey)
            }
        };
        Judged { event: result.as_ref().ok(), outcome, key: None }
    };
    let judged = (0..).zip(events).map(judge).collect();
    (judged, claims)
}

/// Computes the parts of claims that no earlier event affects, many at a time.
fn precompute(
    cases: &mut [Case<'_>],
    accounts: &BatchAccounts<'_>,
    window: FutureWindow,
    policy: &Policy,
    cache: &mut KeyCache,
    inverter: &mut Inverter,
) {
    open_all(cases, accounts, window, policy);
    verify_all(cases, accounts, cache);
    invert_all(cases, policy, inverter);
}

/// Opens the claims that their accounts' states admit.
fn open_all(
    cases: &mut [Case<'_>],
    accounts: &BatchAccounts<'_>,
    window: FutureWindow,
    policy: &Policy,
) {
    for Case { claim, account, precomputed, .. } in cases {
        let (state, key) = accounts.get(*account);
        if check_account(claim, key, state, window).is_ok() {
            precomputed.opened = Some(claim.open(policy));
        }
    }
}

/// Verifies the signatures of the opened commits.
fn verify_all(cases: &mut [Case<'_>], accounts: &BatchAccounts<'_>, cache: &mut KeyCache) {
    let (mut signed, mut signing_bytes) =
        (Vec::with_capacity(cases.len()), Vec::with_capacity(cases.len()));
    for (at, case) in cases.iter().enumerate() {
        let (_, key) = accounts.get(case.account);
        if let (Some(Ok(opened)), AccountKey::Known(key)) = (&case.precomputed.opened, key) {
            signed.push((at, opened.object.sig, key));
            signing_bytes.push(opened.object.signing_bytes());
        }
    }
    let digests = digest_many(&signing_bytes);
    let checks: Vec<SignatureCheck<'_>> = signed
        .iter()
        .zip(digests)
        .map(|((_, signature, key), digest)| SignatureCheck {
            signed: SignedData::Digest(digest),
            signature: *signature,
            key: KeyRef::Compressed(*key),
        })
        .collect();
    let mut verdicts = vec![Ok(()); checks.len()];
    verify_many_cached(&checks, cache, &mut verdicts);
    for ((at, ..), verdict) in signed.iter().zip(verdicts) {
        cases[*at].precomputed.signature = Some(verdict);
    }
}

/// Undoes the operations of the commits whose signatures are valid.
fn invert_all<'a>(cases: &mut [Case<'a>], policy: &Policy, inverter: &mut Inverter) {
    let commits = || cases.iter().filter_map(|case| case.to_invert(policy));
    let undos: Vec<RecordOp<'a>> =
        commits().flat_map(|(event, _)| event.ops).map(RecordOp::from).collect();
    let mut rest = undos.as_slice();
    let inversion = |(event, root): (&Commit<'a>, Cid)| {
        let (ops, others) = rest.split_at(event.ops.len());
        rest = others;
        Inversion { root, source: BlockIndex::new(event.blocks), ops }
    };
    let inversions: Vec<Inversion<'_, 'a, BlockIndex<'a>>> = commits().map(inversion).collect();
    let inverted = inverter.invert_batch(&inversions);
    let cases = cases.iter_mut().filter(|case| case.to_invert(policy).is_some());
    for (case, inverted) in cases.zip(inverted) {
        case.precomputed.inverted = Some(inverted);
    }
}

#[cfg(test)]
impl Judge {
    /// The data that a batch of less than a tile has of every frame's claim before it runs the checks: `o` for
    /// the opened commit, `s` for its signature, `i` for its inversion, all valid.
    pub(super) fn precompute<S: ChainState<Error: fmt::Debug>>(
        &mut self,
        frames: &[&[u8]],
        keys: &impl KeySource,
        state: &mut S,
        now_micros: u64,
    ) -> Vec<String> {
        let Self { policy, decoder, cache, inverter } = self;
        let window = FutureWindow::new(now_micros, policy);
        let (_, claims) = read_all(decoder.decode_batch(frames), policy);
        let dids: Vec<&str> = claims.iter().map(|(_, claim)| claim.did).collect();
        let (accounts, numbers) = BatchAccounts::load(&dids, keys, state, window).unwrap();
        let mut cases: Vec<Case<'_>> = claims.into_iter().zip(numbers).map(Case::new).collect();
        precompute(&mut cases, &accounts, window, policy, cache, inverter);
        let text = |case: &Case<'_>| {
            let Precomputed { opened, signature, inverted } = &case.precomputed;
            let has = [
                ('o', matches!(opened, Some(Ok(_)))),
                ('s', matches!(signature, Some(Ok(())))),
                ('i', matches!(inverted, Some(Ok(_)))),
            ];
            has.iter().filter(|(_, has)| *has).map(|(letter, _)| *letter).collect()
        };
        cases.iter().map(text).collect()
    }
}

/// Default size of the cache of keys, in bytes.
const KEY_CACHE_BYTES: usize = 64 << 20;

/// Cases that go through the steps together: enough to fill the SIMD lanes, few enough to stay in the
/// CPU cache from one step to the next.
const TILE_LEN: usize = 128;

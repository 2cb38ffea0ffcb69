//! Many frames at once: what is costly is found for all together, then each is settled in its turn.
//!
//! What is found ahead does not depend on the state that earlier frames of the batch leave. A frame
//! that is not admitted by the state before the batch is not admitted by a later one, so nothing is
//! computed for those.

use atproto::commit::digest_many;
use atproto::event::{Commit, Event, FrameError};
use atproto::mst::inversion::{Inversion, Inverter, RecordOp};
use codec::Cid;
use crypto::{KeyCache, KeyRef, SignatureCheck, SignedData, verify_many_cached};

use super::accounts::Accounts;
use super::admission::{self, Now};
use super::chain;
use super::claim::{Claim, Message};
use super::evidence::{Evidence, Found};
use super::judge::{Judge, read};
use super::keys::{AccountKey, KeySource};
use super::outcome::{Judged, Outcome};
use super::policy::Policy;
use super::proof::Blocks;
use super::rejection::SyncRejection;
use super::road;
use super::state::ChainState;

/// A claim on its way to a verdict.
pub(super) struct Case<'a> {
    pub(super) claim: Claim<'a>,
    /// The number of its account in [`Accounts`].
    pub(super) account: usize,
    /// The index of its frame.
    place: usize,
    found: Found<'a>,
}

impl<'a> Case<'a> {
    /// The commit whose operations are to be undone, and the tree to do it in.
    fn to_undo(&self) -> Option<(&'a Commit<'a>, Cid)> {
        match (self.claim.message, &self.found) {
            (
                Message::Commit(event),
                Found { opened: Some(Ok(opened)), signature: Some(Ok(())), .. },
            ) if chain::may_be_undone(event) => Some((event, opened.object.data)),
            _ => None,
        }
    }
}

pub(super) fn judge<'j, S: ChainState>(
    judge: &'j mut Judge,
    frames: &[&'j [u8]],
    keys: &impl KeySource,
    state: &mut S,
    now_micros: u64,
) -> Result<Vec<Judged<'j>>, S::Error> {
    let Judge { policy, decoder, cache, inverter } = judge;
    let now = Now::new(now_micros, policy);
    let (mut judged, mut cases) = read_all(decoder.decode_batch(frames), policy);
    let mut accounts = Accounts::load(&mut cases, keys, state)?;
    for tile in cases.chunks_mut(TILE_LEN) {
        open_all(tile, &accounts, now, policy);
        verify_all(tile, &accounts, cache);
        undo_all(tile, inverter);
    }
    for Case { claim, account, place, found } in cases {
        let evidence = Evidence { policy, cache, inverter, found };
        let (state, key) = accounts.get_mut(account);
        let outcome = road::judge(&claim, key, state, now, evidence);
        accounts.note(account, outcome.is_accepted());
        judged[place].outcome = outcome;
    }
    accounts.store(state)?;
    Ok(judged)
}

/// Splits the events into those that are settled at once and those that make a claim.
fn read_all<'a>(
    events: &'a [Result<Event<'a>, FrameError>],
    policy: &Policy,
) -> (Vec<Judged<'a>>, Vec<Case<'a>>) {
    let mut cases = Vec::with_capacity(events.len());
    let judge = |(place, result): (usize, &'a Result<Event<'a>, FrameError>)| {
        let outcome = match read(result, policy) {
            Err(outcome) => outcome,
            Ok(claim) => {
                cases.push(Case { claim, account: 0, place, found: Found::default() });
                // Until the case is settled.
                Outcome::Rejected(SyncRejection::NoKey)
            }
        };
        Judged { event: result.as_ref().ok(), outcome }
    };
    let judged = (0..).zip(events).map(judge).collect();
    (judged, cases)
}

/// Opens the claims that are admitted.
fn open_all(cases: &mut [Case<'_>], accounts: &Accounts<'_>, now: Now, policy: &Policy) {
    for Case { claim, account, found, .. } in cases {
        let (state, key) = accounts.get(*account);
        if admission::check(claim, key, state, now).is_ok() {
            found.opened = Some(claim.open(policy));
        }
    }
}

/// Verifies the signatures of what was opened.
fn verify_all(cases: &mut [Case<'_>], accounts: &Accounts<'_>, cache: &mut KeyCache) {
    let (mut signed, mut signing_bytes) =
        (Vec::with_capacity(cases.len()), Vec::with_capacity(cases.len()));
    for (at, case) in cases.iter().enumerate() {
        let (_, key) = accounts.get(case.account);
        if let (Some(Ok(opened)), AccountKey::Known(key)) = (&case.found.opened, key) {
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
        cases[*at].found.signature = Some(verdict);
    }
}

/// Undoes the operations of the commits that are signed.
fn undo_all<'a>(cases: &mut [Case<'a>], inverter: &mut Inverter) {
    let signed = || cases.iter().filter_map(Case::to_undo);
    let undos: Vec<RecordOp<'a>> =
        signed().flat_map(|(event, _)| event.ops).map(RecordOp::from).collect();
    let mut rest = undos.as_slice();
    let inversion = |(event, root): (&Commit<'a>, Cid)| {
        let (ops, behind) = rest.split_at(event.ops.len());
        rest = behind;
        Inversion { root, source: Blocks::new(event.blocks), ops }
    };
    let inversions: Vec<Inversion<'_, 'a, Blocks<'a>>> = signed().map(inversion).collect();
    let undone = inverter.invert_batch(&inversions);
    let cases = cases.iter_mut().filter(|case| case.to_undo().is_some());
    for (case, undone) in cases.zip(undone) {
        case.found.undone = Some(undone);
    }
}

/// So many cases go through together: enough to fill the lanes, few enough to stay in the cache from
/// one step to the next.
const TILE_LEN: usize = 128;

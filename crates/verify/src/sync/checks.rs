//! The checks of sync 1.1, in the order of [the table](super#the-table-of-checks): the frame's
//! statements, the account's state, the contents of the CAR slice, the signature, the operations, the
//! chain. Only [`run_checks`] changes the state, and only after the last check.

use atproto::commit::Commit as CommitObject;
use atproto::event::{
    Account, Action, Block, Commit, Event, FrameError, Identity, RepoOp, Sync, first_duplicate,
};
use atproto::mst::inversion::Inverter;
use atproto::syntax::{Datetime, Did, Handle, RepoPath, Tid};
use codec::car::HashProof;
use codec::{Cid, CidRef};
use crypto::{
    CompressedKey, KeyCache, KeyRef, SignatureCheck, SignatureVerdict, SignedData,
    verify_many_cached,
};

use super::accounts::AccountKey;
use super::outcome::{Chain, ChainBreak, Ignored, Leniency, Outcome, SyncEffect};
use super::policy::{FutureWindow, Policy};
use super::proof::{self, Inverted};
use super::rejection::{OpFault, SyncRejection};
use super::state::{AccountState, Head, SyncState};
use crate::{InvalidRecord, Verified};

/// A message that carries a signed commit object.
#[derive(Clone, Copy, Debug)]
pub(super) enum Message<'a> {
    Commit(&'a Commit<'a>),
    Sync(&'a Sync<'a>),
}

/// A message whose own fields are valid.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim<'a> {
    pub(super) message: Message<'a>,
    /// The account's DID, in its normal form.
    pub(super) did: &'a str,
    rev: Tid,
    since: Option<Tid>,
}

/// The commit object of a claim, found in its CAR slice and in agreement with its fields.
#[derive(Clone, Copy, Debug)]
pub(super) struct OpenedCommit<'a> {
    cid: Cid,
    pub(super) object: CommitObject<'a>,
}

/// Runs the checks from row 4 on, and advances the account if the event is valid.
pub(super) fn run_checks<'a>(
    claim: &Claim<'a>,
    key: AccountKey,
    account: &mut AccountState,
    window: FutureWindow,
    mut lazy: LazyChecks<'a, '_>,
) -> Outcome<'a> {
    let mut run = || {
        check_account(claim, key, account, window)?;
        let opened = lazy.open(claim)?;
        check_signature(&opened, key, &mut lazy)?;
        let head = Head { rev: claim.rev, data: opened.object.data, commit: opened.cid };
        match claim.message {
            Message::Sync(event) => Ok(accept_sync(event, head, account)),
            Message::Commit(event) => {
                let chain = check_chain(claim, event, &opened, account, &mut lazy)?;
                Ok(accept_commit(event, chain, head, account))
            }
        }
    };
    run().unwrap_or_else(|outcome: Outcome<'a>| outcome)
}

// The frame and its fields: rows 1, 3, 8 (the archive itself), 2, 6 (syntax) and 18 to 20.

/// Reads the claim of a decoded frame; the outcome of frames that make none.
pub(super) fn read_claim<'a>(
    event: &'a Result<Event<'a>, FrameError>,
    policy: &Policy,
) -> Result<Claim<'a>, Outcome<'a>> {
    let message = match event {
        // Rows 1, 3 and 8 by the decoder.
        Err(error) => return Err(SyncRejection::from(*error).into()),
        Ok(Event::Commit(commit)) => Message::Commit(commit),
        Ok(Event::Sync(sync)) => Message::Sync(sync),
        Ok(other) => return Err(check_unsigned(other, policy)),
    };
    Ok(check_fields(message, policy)?)
}

/// The outcome of an event without a proof: whether the fields that it must have are well formed.
fn check_unsigned<'a>(event: &'a Event<'a>, policy: &Policy) -> Outcome<'a> {
    let checked = match event {
        Event::Identity(Identity { seq, did, time, handle }) => normal_did(did)
            .and_then(|_| check_handle(*handle))
            .and_then(|()| check_time(time, policy))
            .and_then(|()| check_seq(*seq)),
        Event::Account(Account { seq, did, time, .. }) => {
            normal_did(did).and_then(|_| check_time(time, policy)).and_then(|()| check_seq(*seq))
        }
        _ => Ok(()),
    };
    checked.map_or_else(Outcome::from, |()| Outcome::Unjudged(event))
}

fn check_fields<'a>(message: Message<'a>, policy: &Policy) -> Result<Claim<'a>, SyncRejection<'a>> {
    let (seq, did, rev, since, time) = match message {
        Message::Commit(commit) => (commit.seq, commit.repo, commit.rev, commit.since, commit.time),
        Message::Sync(sync) => (sync.seq, sync.did, sync.rev, None, sync.time),
    };
    let did = normal_did(did)?;
    if let Message::Sync(sync) = message {
        check_sync_len(sync, policy.max_sync_blocks_bytes)?;
    }
    let rev = parse_rev("rev", rev)?;
    let since = since.map(|since| parse_rev("since", since)).transpose()?;
    check_time(time, policy)?;
    check_seq(seq)?;
    Ok(Claim { message, did, rev, since })
}

/// Row 2. A `did:plc` has one spelling: no other may pass for another account.
fn normal_did(text: &str) -> Result<&str, SyncRejection<'_>> {
    match Did::parse(text) {
        Ok(did) if did.is_plc() || did.method() != "plc" => Ok(text),
        _ => Err(SyncRejection::Did(text)),
    }
}

/// Row 3.
fn check_sync_len<'a>(sync: &Sync<'a>, limit: usize) -> Result<(), SyncRejection<'a>> {
    match sync.car.len() {
        len if len > limit => Err(SyncRejection::SyncLimit { len, limit }),
        _ => Ok(()),
    }
}

/// Row 6, the syntax.
fn parse_rev<'a>(field: &'static str, text: &'a str) -> Result<Tid, SyncRejection<'a>> {
    Tid::parse(text).map_err(|error| SyncRejection::RevSyntax { field, error })
}

/// Row 18.
fn check_time<'a>(time: &'a str, policy: &Policy) -> Result<(), SyncRejection<'a>> {
    if policy.accept_any_time || Datetime::parse(time).is_ok() {
        Ok(())
    } else {
        Err(SyncRejection::Time(time))
    }
}

/// Row 19. Beyond 2⁵³ − 1 not every language has the number.
fn check_seq<'a>(seq: i64) -> Result<(), SyncRejection<'a>> {
    match seq {
        1..=MAX_SEQ => Ok(()),
        _ => Err(SyncRejection::Seq(seq)),
    }
}

/// Row 20.
fn check_handle(handle: Option<&str>) -> Result<(), SyncRejection<'_>> {
    match handle.map(|text| (text, Handle::parse(text))) {
        Some((text, Err(error))) => Err(SyncRejection::Handle { text, error }),
        _ => Ok(()),
    }
}

// The account's state and the clock: rows 4 to 7.

/// Row 7.
fn check_window<'a>(rev: Tid, window: FutureWindow) -> Result<(), SyncRejection<'a>> {
    let FutureWindow { now_micros, window_micros } = window;
    if window.admits(rev) {
        Ok(())
    } else {
        Err(SyncRejection::FutureRev { rev, now_micros, window_micros })
    }
}

/// Rows 4 to 7. A claim that fails here also fails after later events of its account, because a stored
/// revision only grows: a batch computes nothing ahead for it.
pub(super) fn check_account<'a>(
    claim: &Claim<'a>,
    key: AccountKey,
    account: &AccountState,
    window: FutureWindow,
) -> Result<(), Outcome<'a>> {
    if key == AccountKey::OtherHost {
        return Err(SyncRejection::Host.into());
    }
    if !account.is_active {
        return Err(Ignored::Inactive.into());
    }
    if let Some(head) = account.head
        && claim.rev <= head.rev
    {
        return Err(Ignored::Stale { rev: claim.rev, stored: head.rev }.into());
    }
    Ok(check_window(claim.rev, window)?)
}

// The commit object and the operations by themselves: rows 8 to 10, 12 and 16.

impl<'a> Claim<'a> {
    /// Finds the commit object and holds the event's fields against it.
    pub(super) fn open(&self, policy: &Policy) -> Result<OpenedCommit<'a>, SyncRejection<'a>> {
        let (root, blocks, rev) = match self.message {
            Message::Commit(commit) => (commit.root, commit.blocks, commit.rev),
            Message::Sync(sync) => (sync.root, sync.blocks, sync.rev),
        };
        let root = root.filter(|root| root.is_dag_cbor());
        let cid = root.and_then(CidRef::to_cid).ok_or(SyncRejection::Root)?;
        let block = blocks.iter().find(|block| block.cid == cid.as_cid_ref());
        let block = block.ok_or(SyncRejection::CommitMissing(cid))?;
        if let Message::Commit(Commit { commit, .. }) = self.message
            && *commit != cid
        {
            return Err(SyncRejection::CommitCid { claimed: *commit, root: cid });
        }
        let object = CommitObject::parse(block.data).map_err(SyncRejection::Commit)?;
        if object.did != self.did {
            return Err(SyncRejection::DidMismatch(object.did));
        }
        if object.rev != rev {
            return Err(SyncRejection::RevMismatch(object.rev));
        }
        if let Message::Commit(commit) = self.message {
            check_flags(commit, policy)?;
            check_ops(commit, policy)?;
        }
        Ok(OpenedCommit { cid, object })
    }
}

/// Row 12.
fn check_flags<'a>(commit: &Commit<'a>, policy: &Policy) -> Result<(), SyncRejection<'a>> {
    if commit.too_big == Some(true) && !policy.accept_too_big {
        return Err(SyncRejection::TooBig);
    }
    if commit.rebase == Some(true) && !policy.accept_rebase {
        return Err(SyncRejection::Rebase);
    }
    Ok(())
}

/// Row 16, as far as it needs no tree.
fn check_ops<'a>(commit: &Commit<'a>, policy: &Policy) -> Result<(), SyncRejection<'a>> {
    let may_lack_prev = policy.accept_ops_without_prev
        || (policy.accept_missing_prev_data && commit.prev_data.is_none());
    for op in commit.ops {
        RepoPath::parse(op.path).map_err(|error| SyncRejection::Path { path: op.path, error })?;
        check_cids(op, may_lack_prev)
            .map_err(|fault| SyncRejection::Op { path: op.path, fault })?;
        check_record(op, policy)?;
    }
    match first_duplicate(commit.ops, |op| op.path) {
        Some(at) => Err(SyncRejection::DuplicatePath(commit.ops[at].path)),
        None => Ok(()),
    }
}

fn check_cids(op: &RepoOp<'_>, may_lack_prev: bool) -> Result<(), OpFault> {
    match (op.action, op.cid, op.prev) {
        (Action::Create | Action::Update, None, _) => Err(OpFault::CidMissing),
        (Action::Delete, Some(_), _) => Err(OpFault::CidForbidden),
        (Action::Create, _, Some(_)) => Err(OpFault::PrevForbidden),
        (Action::Update | Action::Delete, _, None) if !may_lack_prev => Err(OpFault::PrevMissing),
        _ => Ok(()),
    }
}

/// Checks that the written record is present and matches its CID.
fn check_record<'a>(op: &RepoOp<'a>, policy: &Policy) -> Result<(), SyncRejection<'a>> {
    let Some(cid) = op.cid else { return Ok(()) };
    if !cid.is_dag_cbor() {
        return Err(SyncRejection::RecordCid(op.path));
    }
    let Some(Block { proof: HashProof::Checked, .. }) = op.record else {
        return Err(SyncRejection::RecordMissing(op.path));
    };
    if policy.strict_records
        && let Some(InvalidRecord { error, .. }) = InvalidRecord::of_op(op)
    {
        return Err(SyncRejection::Record { path: op.path, error });
    }
    Ok(())
}

// The signature: row 11.

fn check_signature<'a>(
    opened: &OpenedCommit<'a>,
    key: AccountKey,
    lazy: &mut LazyChecks<'a, '_>,
) -> Result<(), SyncRejection<'a>> {
    match key {
        AccountKey::Known(key) => lazy.verify(opened, key).map_err(SyncRejection::Signature),
        AccountKey::Unknown | AccountKey::OtherHost => Err(SyncRejection::NoKey),
    }
}

// The operations against the signed tree, and the chain: rows 13, 16, 17, 14 and 15.

fn check_chain<'a>(
    claim: &Claim<'a>,
    event: &'a Commit<'a>,
    opened: &OpenedCommit<'a>,
    account: &AccountState,
    lazy: &mut LazyChecks<'a, '_>,
) -> Result<Chain, SyncRejection<'a>> {
    let policy = lazy.policy;
    let chain = check_continuity(claim, event, account, policy);
    if policy.accept_unproved_operations {
        return Ok(accepted_by(Leniency::UnprovedOperations, chain));
    }
    let leniency = match Origin::of(event, account.head.as_ref(), policy)? {
        Origin::Unknown(leniency) => leniency,
        Origin::Tree(root) => match proof::check_inversion(
            lazy.invert(event, opened),
            event,
            opened.object.data,
            root,
        ) {
            Ok(()) => return Ok(chain),
            Err(_) if may_fail_inversion(policy, chain) => Leniency::FailedInversion,
            Err(rejection) => return Err(rejection),
        },
    };
    proof::check_in_tree(event, opened.object.data, policy)?;
    Ok(accepted_by(leniency, chain))
}

/// The chain of a commit that a leniency accepted.
fn accepted_by(leniency: Leniency, chain: Chain) -> Chain {
    if chain == Chain::Intact { Chain::Unproved(leniency) } else { chain }
}

/// A failed inversion is accepted only where the chain is not broken as well.
fn may_fail_inversion(policy: &Policy, chain: Chain) -> bool {
    policy.accept_failed_inversion && !matches!(chain, Chain::Broken(_))
}

/// The tree that a commit starts from.
enum Origin {
    /// The tree with this root.
    Tree(Cid),
    /// A tree that the event does not name; the policy accepts that.
    Unknown(Leniency),
}

impl Origin {
    /// Row 13. The first commit of all may leave out that it starts from the empty tree.
    fn of<'a>(
        event: &Commit<'a>,
        stored: Option<&Head>,
        policy: &Policy,
    ) -> Result<Self, SyncRejection<'a>> {
        match (event.prev_data, lacks_prev(event)) {
            (Some(root), false) => Ok(Self::Tree(root)),
            (Some(_), true) => Ok(Self::Unknown(Leniency::OpsWithoutPrev)),
            (None, false) if event.since.is_none() && stored.is_none() => {
                Ok(Self::Tree(proof::empty_tree()))
            }
            (None, _) if policy.accept_missing_prev_data => {
                Ok(Self::Unknown(Leniency::MissingPrevData))
            }
            (None, _) => Err(SyncRejection::PrevDataMissing),
        }
    }
}

/// Whether [`check_chain`] may need the operations undone, whatever the state.
pub(super) fn may_need_inversion(event: &Commit<'_>, policy: &Policy) -> bool {
    !policy.accept_unproved_operations
        && !lacks_prev(event)
        && (event.prev_data.is_some() || event.since.is_none())
}

/// Whether an operation leaves out the record it replaced, so that it cannot be undone.
fn lacks_prev(event: &Commit<'_>) -> bool {
    event.ops.iter().any(|op| op.action != Action::Create && op.prev.is_none())
}

/// Rows 14 and 15.
fn check_continuity(
    claim: &Claim<'_>,
    event: &Commit<'_>,
    account: &AccountState,
    policy: &Policy,
) -> Chain {
    let is_synchronized = account.sync == SyncState::Synchronized;
    let Some(head) = account.head else {
        return if is_synchronized { Chain::FirstSeen } else { Chain::StillDesynchronized };
    };
    if claim.since != Some(head.rev) && !policy.accept_since_mismatch {
        return Chain::Broken(ChainBreak::Since { since: claim.since, stored: head.rev });
    }
    match event.prev_data {
        Some(prev_data) if prev_data != head.data => {
            Chain::Broken(ChainBreak::PrevData { prev_data, stored: head.data })
        }
        _ if !is_synchronized => Chain::StillDesynchronized,
        _ => Chain::Intact,
    }
}

// The new state of the account.

fn accept_commit<'a>(
    event: &'a Commit<'a>,
    chain: Chain,
    head: Head,
    account: &mut AccountState,
) -> Outcome<'a> {
    account.head = Some(head);
    if matches!(chain, Chain::Broken(_)) {
        account.sync = SyncState::Desynchronized;
    }
    Outcome::Commit(Verified::vouch(event), chain)
}

fn accept_sync<'a>(event: &'a Sync<'a>, head: Head, account: &mut AccountState) -> Outcome<'a> {
    let effect = match account.head.replace(head) {
        None if account.sync == SyncState::Synchronized => SyncEffect::FirstSeen,
        None => SyncEffect::Desynchronized,
        Some(stored) if stored.data == head.data => SyncEffect::Unchanged,
        Some(_) => {
            account.sync = SyncState::Desynchronized;
            SyncEffect::Desynchronized
        }
    };
    Outcome::Sync(Verified::vouch(event), effect)
}

/// The costly results that depend on neither state nor clock, as far as a batch has them already.
#[derive(Clone, Debug, Default)]
pub(super) struct Precomputed<'a> {
    pub(super) opened: Option<Result<OpenedCommit<'a>, SyncRejection<'a>>>,
    pub(super) signature: Option<SignatureVerdict>,
    pub(super) inverted: Option<Inverted>,
}

/// Takes a costly result from [`Precomputed`], or computes it.
pub(super) struct LazyChecks<'a, 'j> {
    pub(super) policy: &'j Policy,
    pub(super) cache: &'j mut KeyCache,
    pub(super) inverter: &'j mut Inverter,
    pub(super) precomputed: Precomputed<'a>,
}

impl<'a> LazyChecks<'a, '_> {
    fn open(&mut self, claim: &Claim<'a>) -> Result<OpenedCommit<'a>, SyncRejection<'a>> {
        self.precomputed.opened.take().unwrap_or_else(|| claim.open(self.policy))
    }

    fn verify(&mut self, opened: &OpenedCommit<'a>, key: CompressedKey) -> SignatureVerdict {
        self.precomputed.signature.take().unwrap_or_else(|| {
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

    fn invert(&mut self, event: &'a Commit<'a>, opened: &OpenedCommit<'a>) -> Inverted {
        let data = opened.object.data;
        self.precomputed
            .inverted
            .take()
            .unwrap_or_else(|| proof::invert(event, data, self.inverter))
    }
}

/// The largest sequence number.
const MAX_SEQ: i64 = (1 << 53) - 1;

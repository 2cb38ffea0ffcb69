//! Proves an archive again: every file has the bytes that its name says, every verified event is judged again under the
//! key that is stored with it, and every row and column that is derived from a frame is what the frame says. A file that is not
//! what its name says does not end the proof of the others.

use std::collections::BTreeMap;
use std::num::NonZeroU64;
use std::sync::Arc;

use crypto::CompressedKey;
use sha2::{Digest, Sha256};
use verify::sync::{Chain, FutureWindow, Ignored, Judge, Judged, MemoryState, Outcome, Policy};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::event::ArchivedEvent;
use crate::key_history::KeyHistories;
use crate::prove_compact::CompactProver;
use crate::prove_derived::DerivedProver;
use crate::rows::{COMPACT, FULL};
use crate::scan::{EventColumns, EventRow, Scan, Selection};
use crate::verify_files::Repeats;

/// What is verified: all of the archive by default.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct VerifyOptions {
    /// One account. Files that cannot have rows of it are not read.
    pub did: Option<String>,
    /// The first time of arrival, in microseconds since 1970.
    pub since: Option<i64>,
    /// One account in so many, by a hash of its DID and `seed`.
    pub sample: Option<NonZeroU64>,
    /// Decides which accounts are of the sample.
    pub seed: u64,
}

impl VerifyOptions {
    fn has_account(&self, did: &str) -> bool {
        let is_sampled = |every: NonZeroU64| {
            let mut hash = Sha256::new();
            hash.update(self.seed.to_le_bytes());
            hash.update(did);
            let digest: [u8; 32] = hash.finalize().into();
            let (number, _) = digest.split_first_chunk().expect("32 bytes");
            u64::from_le_bytes(*number).is_multiple_of(every.get())
        };
        self.did.as_ref().is_none_or(|only| *only == *did) && self.sample.is_none_or(is_sampled)
    }

    /// Whether events without an account are verified too.
    fn has_all_accounts(&self) -> bool {
        self.did.is_none() && self.sample.is_none()
    }

    fn selection(&self) -> Selection {
        Selection { did: self.did.clone(), ..Selection::default() }
    }
}

/// What a verification found.
#[derive(Clone, Debug, Default)]
pub struct VerifyReport {
    /// Number of versions of the tables' logs.
    pub versions: u64,
    /// Number of files that another program wrote, by its name and operation. Their rows are proved by their content; nothing proves
    /// those without a signature.
    pub rewritten: BTreeMap<String, u64>,
    /// Number of Parquet files in the tables' folders that no log names: of a writer at work, of one that ended, or of whoever put
    /// them there.
    pub unnamed_files: u64,
    /// Number of files whose hash was compared with their name.
    pub files: u64,
    /// Number of events.
    pub events: u64,
    /// Number of events that were proved again.
    pub proved: u64,
    /// Number of proved events that are stored in compact form.
    pub compact: u64,
    /// Number of snapshots of repositories.
    pub snapshots: u64,
    /// Number of snapshots that were proved again.
    pub proved_snapshots: u64,
    /// Number of histories of keys.
    pub key_histories: u64,
    /// Number of verified events and snapshots whose key was compared with the stored history of the account's keys.
    pub compared_keys: u64,
    /// Number of proved commits that do not continue the one before.
    pub gaps: u64,
    /// Number of events that were stored as not verified, by their code.
    pub unverified: BTreeMap<String, u64>,
    /// Number of refusals, by code.
    pub refused: BTreeMap<String, u64>,
}

/// A row that was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The file's path within the archive.
    pub file: String,
    /// The row in it, from 0; `None` for the file as a whole.
    pub row: Option<u64>,
    /// The account.
    pub did: Option<String>,
    /// The stable code of the broken rule.
    pub code: &'static str,
    /// The rule in words.
    pub message: String,
}

/// The code of a broken rule, and the rule in words.
pub(crate) type Refusal = (&'static str, String);

/// A rule of archives, besides those of the events in them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rule {
    /// A file has the bytes that its name says.
    File,
    /// A row is in the table once.
    Repeated,
    /// A checkpoint of a log says what its entries say.
    Checkpoint,
    /// Nothing in an archive is a symbolic link.
    Link,
    /// A row is of the account of its frame.
    Account,
    /// A verified event has a signature.
    Kind,
    /// A form is known.
    Form,
    /// An erased account has no rows.
    Erased,
    /// The records of a snapshot are those that the account signed.
    Records,
    /// The operations of a compact commit can be applied.
    Operations,
    /// What is derived from a frame is what it says.
    Derived,
    /// What a compact commit continues is in the archive.
    Base,
    /// The account signed it.
    Signature,
    /// A column has a value of its kind.
    Value,
    /// A history of keys is one of its account.
    History,
    /// An account had the key under which it signed.
    Key,
    /// An operation that gave an account its key stayed in force.
    NullifiedKey,
}

impl Rule {
    /// The stable code.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::File => "archive/file",
            Self::Repeated => "archive/repeated",
            Self::Checkpoint => "archive/checkpoint",
            Self::Link => "archive/link",
            Self::Account => "archive/account",
            Self::Kind => "archive/kind",
            Self::Form => "archive/form",
            Self::Erased => "archive/erased",
            Self::Records => "archive/records",
            Self::Operations => "archive/operations",
            Self::Derived => "archive/derived",
            Self::Base => "archive/base",
            Self::Signature => "signature/wrong",
            Self::Value => "archive/value",
            Self::History => "archive/history",
            Self::Key => "archive/key",
            Self::NullifiedKey => "archive/key-nullified",
        }
    }
}

impl Finding {
    pub(crate) fn of(row: &EventRow, code: &'static str, message: String) -> Self {
        let (file, number) = row.place();
        let did = row.event().did.map(str::to_owned);
        Self { file: file.to_owned(), row: Some(number), did, code, message }
    }
}

impl VerifyReport {
    /// Whether anything was refused.
    pub fn is_refused(&self) -> bool {
        !self.refused.is_empty()
    }
}

/// A verification under way.
pub(crate) struct Verification<'f> {
    pub(crate) report: VerifyReport,
    options: &'f VerifyOptions,
    on_finding: &'f mut dyn FnMut(Finding),
}

impl Verification<'_> {
    /// Whether an account is verified.
    pub(crate) fn has_account(&self, did: &str) -> bool {
        self.options.has_account(did)
    }

    /// The first time of arrival that is verified.
    pub(crate) fn since(&self) -> i64 {
        self.options.since.unwrap_or(i64::MIN)
    }

    /// Whether a row is verified.
    fn has(&self, event: &ArchivedEvent<'_>) -> bool {
        let is_of_account =
            event.did.map_or(self.options.has_all_accounts(), |did| self.has_account(did));
        is_of_account && event.received >= self.since()
    }

    /// Counts a row as proved, unless it breaks a rule.
    pub(crate) fn settle(&mut self, row: &EventRow, refusal: Option<Refusal>) {
        match refusal {
            None => self.report.proved += 1,
            Some((code, message)) => self.refuse(Finding::of(row, code, message)),
        }
    }

    pub(crate) fn refuse(&mut self, finding: Finding) {
        *self.report.refused.entry(finding.code.to_owned()).or_default() += 1;
        (self.on_finding)(finding);
    }
}

impl Archive {
    /// Proves the archive again, and passes each refusal to `on_finding`.
    ///
    /// # Errors
    /// If the archive cannot be read. What is wrong with its content is a finding.
    pub async fn verify(
        &self,
        options: &VerifyOptions,
        on_finding: &mut dyn FnMut(Finding),
    ) -> Result<VerifyReport, ArchiveError> {
        let report = VerifyReport::default();
        let mut verification = Verification { report, options, on_finding };
        self.check_layout(&mut verification).await?;
        // Rows that cannot be read are left out; all others are proved by their content.
        let without = self.check_files(&options.selection(), &mut verification).await?;
        let selection = Selection { without: Arc::new(without), ..options.selection() };
        self.prove_events(&selection, &mut verification).await?;
        self.prove_snapshots(&selection, &mut verification).await?;
        self.prove_key_histories(&selection, &mut verification).await?;
        Ok(verification.report)
    }

    async fn prove_events(
        &self,
        selection: &Selection,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let mut scan: Scan<EventColumns> = self.scan(selection).await?;
        let list = self.hide_list_without(&selection.without).await?;
        let (mut prover, mut compact) = (Prover::new(), None);
        let mut histories = KeyHistories::open(self, selection).await?;
        let mut derived = DerivedProver::open(self, selection).await?;
        let mut repeats = Repeats::default();
        while let Some(row) = scan.next().await? {
            let row = EventRow(row);
            let (event, is_selected) = (row.event(), verification.has(&row.event()));
            verification.report.events += u64::from(is_selected);
            if !repeats.admit(&row, verification) {
                continue;
            }
            derived.add(&row, verification).await?;
            if is_selected && event.did.is_some_and(|did| list.is_erased(did)) {
                let message = "the account was erased, and has a row again: erase it again";
                verification.refuse(Finding::of(&row, Rule::Erased.code(), message.to_owned()));
            }
            let is_selected = is_selected && histories.admit(&row, verification).await?;
            match (event.is_verified(), row.form()) {
                (false, _) if is_selected => {
                    let code = event.verdict.to_owned();
                    *verification.report.unverified.entry(code).or_default() += 1;
                }
                // What a later commit of its account continues.
                (true, COMPACT) if event.did.is_some_and(|did| verification.has_account(did)) => {
                    if compact.is_none() {
                        compact = Some(CompactProver::open(self, selection).await?);
                    }
                    if let Some(compact) = &mut compact {
                        compact.prove(row, is_selected, verification).await?;
                    }
                }
                (true, FULL) if is_selected => prover.add(row, verification),
                (true, form) if is_selected => {
                    let message = format!("the form {form} is unknown");
                    verification.refuse(Finding::of(&row, Rule::Form.code(), message));
                }
                _ => {}
            }
        }
        prover.prove(verification);
        if let Some(compact) = &mut compact {
            compact.finish(verification);
        }
        derived.finish(self, verification).await
    }
}

/// Judges rows again, account by account.
struct Prover {
    judge: Judge,
    state: MemoryState,
    batch: Vec<EventRow>,
}

impl Prover {
    fn new() -> Self {
        Self {
            judge: Judge::builder().policy(Policy::default()).build(),
            state: MemoryState::default(),
            batch: Vec::with_capacity(BATCH_LEN),
        }
    }

    /// Proves a row, together with others.
    fn add(&mut self, row: EventRow, verification: &mut Verification<'_>) {
        // An account has one key in a batch.
        let has_other_key = self.batch.last().is_some_and(|last| {
            let (last, event) = (last.event(), row.event());
            last.did == event.did && last.key != event.key
        });
        if self.batch.len() == BATCH_LEN || has_other_key {
            self.prove(verification);
        }
        self.batch.push(row);
    }

    /// Proves the rows so far.
    fn prove(&mut self, verification: &mut Verification<'_>) {
        let batch = std::mem::take(&mut self.batch);
        let events: Vec<_> = batch.iter().map(EventRow::event).collect();
        let Some(last) = events.last() else { return };
        let frames: Vec<&[u8]> = events.iter().map(|event| event.frame).collect();
        let keys: BTreeMap<&str, CompressedKey> =
            events.iter().filter_map(|event| Some((event.did?, read_key(event.key?)?))).collect();
        let key_of = |did: &str| keys.get(did).copied();
        let now = events.iter().map(|event| event.received).max().unwrap_or_default().max(0) as u64;
        let Ok(judged) = self.judge.judge_batch(&frames, &key_of, &mut self.state, now);
        let mut repeated = Vec::new();
        for ((row, event), judged) in batch.iter().zip(&events).zip(&judged) {
            if let Outcome::Ignored(Ignored::Stale { .. }) = judged.outcome {
                repeated.push(row);
                continue;
            }
            let is_gap = matches!(judged.outcome, Outcome::Commit(_, Chain::Broken(_)));
            verification.report.gaps += u64::from(is_gap);
            verification.settle(row, refusal(judged, event));
        }
        // A second writer, or a second import, has stored the revision too: it is proved alone.
        for row in repeated {
            let (event, mut state) = (row.event(), MemoryState::default());
            let Ok(judged) = self.judge.judge(event.frame, &key_of, &mut state, now);
            verification.settle(row, refusal(&judged, &event));
        }
        // Only the last account can go on in the next batch.
        let last = last.did.unwrap_or_default();
        let account = self.state.get(last);
        self.state = MemoryState::default();
        self.state.put(last, account);
    }
}

/// The rule that a row breaks, and the message.
fn refusal(judged: &Judged<'_>, event: &ArchivedEvent<'_>) -> Option<Refusal> {
    match &judged.outcome {
        Outcome::Commit(commit, _) => refuse_account(commit.repo, event.did)
            .or_else(|| refuse_future(commit.rev, event.received)),
        Outcome::Sync(sync, _) => {
            refuse_account(sync.did, event.did).or_else(|| refuse_future(sync.rev, event.received))
        }
        Outcome::Ignored(why) => Some((why.code(), why.to_string())),
        Outcome::Rejected(why) => Some((why.code(), why.to_string())),
        Outcome::Unjudged(_) => Some((Rule::Kind.code(), "the event has no signature".to_owned())),
    }
}

fn read_key(key: &str) -> Option<CompressedKey> {
    CompressedKey::from_did_key(key).ok()
}

/// The row says another account than its frame: the verdict would be about that one.
fn refuse_account(did: &str, row: Option<&str>) -> Option<Refusal> {
    let message = || format!("the frame is of {did}, the row of {}", row.unwrap_or("no account"));
    (row != Some(did)).then(|| (Rule::Account.code(), message()))
}

/// A revision that is ahead of the time of arrival.
pub(crate) fn refuse_future(rev: &str, received: i64) -> Option<Refusal> {
    let rev = rev.parse().ok()?;
    let window = FutureWindow::new(received.max(0) as u64, &Policy::default());
    let message = || format!("revision {rev} is ahead of the time of arrival");
    (!window.admits(rev)).then(|| ("event/future-rev", message()))
}

/// Events judged together: enough to fill the signature lanes, few enough to stay in the cache.
const BATCH_LEN: usize = 512;

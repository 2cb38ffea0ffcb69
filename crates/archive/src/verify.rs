//! Proves an archive again: every file has the bytes that its name says, every verified event is judged again under the
//! key that is stored with it, and every row and column that is derived from a frame matches the frame. A file that
//! does not match its name does not end the proof of the others.

use std::collections::BTreeMap;
use std::sync::Arc;

use crypto::CompressedKey;
use verify::sync::{Chain, Ignored, Judge, Judged, MemoryState, Outcome, Policy};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::event::ArchivedEvent;
use crate::event_rows::{EventColumns, EventRow};
use crate::key_history::KeyHistories;
use crate::prove_compact::CompactProver;
use crate::prove_derived::DerivedProver;
use crate::prove_snapshots::SnapshotProver;
use crate::rows::{COMPACT, FULL};
use crate::rule::{BrokenRule, Rule, refuse_future};
use crate::scan::Scan;
use crate::table_scan::Selection;
use crate::verification::{Finding, Verification, VerifyOptions, VerifyReport};
use crate::verify_files::Repeats;

impl Archive {
    /// Proves the archive again and passes every refusal to `on_finding`.
    ///
    /// # Errors
    /// If the archive cannot be read. Faults of its content are findings.
    pub async fn verify(
        &self,
        options: &VerifyOptions,
        on_finding: &mut dyn FnMut(Finding),
    ) -> Result<VerifyReport, ArchiveError> {
        let mut verification = Verification::new(options, on_finding);
        self.check_layout(&mut verification).await?;
        // Rows that cannot be read are left out; all others are proved by their content.
        let without = self.check_files(&options.selection(), &mut verification).await?;
        let selection = Selection { without: Arc::new(without), ..options.selection() };
        self.prove_events(&selection, &mut verification).await?;
        self.prove_parts(&selection, &mut verification).await?;
        self.prove_key_histories(&selection, &mut verification).await?;
        self.prove_blobs(&selection, &mut verification).await?;
        self.prove_labels(&selection, &mut verification).await?;
        Ok(verification.report)
    }

    /// Proves the events, and the repositories from which chains of commits begin.
    async fn prove_events(
        &self,
        selection: &Selection,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let mut scan: Scan<EventColumns> = self.scan(selection).await?;
        let list = self.hide_list_without(&selection.without).await?;
        let mut prover = Prover::new();
        let mut snapshots = SnapshotProver::open(self, selection).await?;
        let mut compact = None;
        let mut histories = KeyHistories::open(self, selection).await?;
        let mut derived = DerivedProver::open(self, selection).await?;
        let mut repeats = Repeats::default();
        while let Some(row) = scan.next().await? {
            let row = EventRow(row);
            let event = row.event();
            let is_selected = verification.has(&event);
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
                // A later commit of the account continues this row.
                (true, COMPACT) if event.did.is_some_and(|did| verification.has_account(did)) => {
                    if compact.is_none() {
                        compact = Some(CompactProver::open(self, selection).await?);
                    }
                    if let Some(compact) = &mut compact {
                        compact.prove(row, is_selected, &mut snapshots, verification).await?;
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
        derived.finish(self, verification).await?;
        snapshots.finish(verification).await
    }
}

/// Judges rows again, account by account.
struct Prover {
    judge: Judge,
    state: MemoryState,
    batch: Vec<EventRow>,
    /// Bytes of the frames of the batch.
    batch_bytes: usize,
}

impl Prover {
    fn new() -> Self {
        Self {
            judge: Judge::builder().policy(Policy::default()).build(),
            state: MemoryState::default(),
            batch: Vec::with_capacity(BATCH_LEN),
            batch_bytes: 0,
        }
    }

    /// Proves a row, together with others.
    fn add(&mut self, row: EventRow, verification: &mut Verification<'_>) {
        // An account has one key in a batch.
        let has_other_key = self.batch.last().is_some_and(|last| {
            let (last, event) = (last.event(), row.event());
            last.did == event.did && last.key != event.key
        });
        let is_full = self.batch.len() == BATCH_LEN || self.batch_bytes >= BATCH_BYTES;
        if is_full || has_other_key {
            self.prove(verification);
        }
        self.batch_bytes += row.event().frame.len();
        self.batch.push(row);
    }

    /// Proves the rows so far.
    fn prove(&mut self, verification: &mut Verification<'_>) {
        let batch = std::mem::take(&mut self.batch);
        self.batch_bytes = 0;
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
            let event = row.event();
            let mut state = MemoryState::default();
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
fn refusal(judged: &Judged<'_>, event: &ArchivedEvent<'_>) -> Option<BrokenRule> {
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
fn refuse_account(did: &str, row: Option<&str>) -> Option<BrokenRule> {
    let message = || format!("the frame is of {did}, the row of {}", row.unwrap_or("no account"));
    (row != Some(did)).then(|| (Rule::Account.code(), message()))
}

/// Events judged together: enough to fill the signature lanes, few enough to stay in the cache.
const BATCH_LEN: usize = 512;

/// Bytes of frames after which no more are judged together: some three times as many as usual frames have.
const BATCH_BYTES: usize = 8 << 20;

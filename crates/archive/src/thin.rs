//! Stores commits in compact form: the signature and the operations, where these prove the commit.
//!
//! ```text
//! plan:    events ── account by account ──> chains ──> commits whose operations give the signed tree
//! rewrite: events, ops of a day ── merged ──> new files ── ops, then events, replaced in the log ──> old files deleted
//! ```

use std::collections::{BTreeMap, HashSet};
use std::hash::{BuildHasher, RandomState};

use atproto::commit::Commit as CommitObject;
use atproto::event::{Commit, Decoder, Event};
use crypto::CompressedKey;
use jiff::civil::Date;

use crate::archive::Archive;
use crate::chain::{ChainCommit, Chains, ops_of_frame, ops_of_rows};
use crate::delta::Add;
use crate::error::{ArchiveError, ArchiveFault};
use crate::event::ArchivedEvent;
use crate::event_rows::{EventColumns, EventRow};
use crate::merge::MergedFiles;
use crate::op_rows::OpColumns;
use crate::prove_compact::OpsOfCommits;
use crate::record_trees::RecordTrees;
use crate::replace::{Replacement, bytes, files_of_day};
use crate::rows::{COMPACT, EventRows, FULL, Fields, Form, OpRows, field_decoder};
use crate::scan::Scan;
use crate::signatures::SignatureBatch;
use crate::signed_commit::unusual_block;
use crate::table::{Table, day_of};
use crate::table_rows::{Columns, Key};
use crate::table_scan::Selection;

/// The commits that were made compact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Thinned {
    /// Number of commits that are now in compact form.
    pub commits: u64,
    /// Number of commits that came before the time and stay as they are: no chain proves them.
    pub kept: u64,
    /// Number of files that were replaced.
    pub files: u64,
    /// Size of these files in bytes.
    pub bytes_before: u64,
    /// Size of the files in their place in bytes.
    pub bytes_after: u64,
}

impl Archive {
    /// Stores verified commits that came before a time, in microseconds since 1970, in compact form: commits that a
    /// chain proves, which begins at a repository of the archive or at the account's first commit. The others stay as
    /// they are.
    ///
    /// # Errors
    /// If the archive cannot be written. Finished work stays, and is not repeated.
    pub async fn thin(&self, before: i64) -> Result<Thinned, ArchiveError> {
        self.check_logs().await?;
        let mut thinned = Thinned::default();
        loop {
            let plan = Planner::plan(self, before).await?;
            thinned.kept = plan.kept;
            for (day, commits) in &plan.days {
                let rewritten = self.rewrite_day(*day, &plan, commits).await?;
                thinned.commits += rewritten.commits;
                thinned.files += rewritten.files;
                thinned.bytes_before += rewritten.bytes_before;
                thinned.bytes_after += rewritten.bytes_after;
            }
            if plan.is_complete || plan.days.is_empty() {
                self.sweep().await?;
                return Ok(thinned);
            }
        }
    }

    /// Replaces the files of a day of `events` and `ops` by merged ones, with the planned commits in compact form.
    pub(crate) async fn rewrite_day(
        &self,
        day: Date,
        plan: &Plan,
        commits: &HashSet<u64>,
    ) -> Result<Thinned, ArchiveError> {
        for _ in 0..MAX_ATTEMPTS {
            // Operations are committed before their events, so these are the ones of all events, and perhaps of more.
            let events = files_of_day(&*self.snapshot(Table::Events).await?, day);
            let ops = files_of_day(&*self.snapshot(Table::Ops).await?, day);
            self.check_content(Table::Events, &events).await?;
            self.check_content(Table::Ops, &ops).await?;
            let mut rewrite = Rewrite::open(self, day, [&events, &ops]).await?;
            rewrite.run(plan, commits).await?;
            let (event_files, op_files) = rewrite.finish().await?;
            let ops = Replacement { old: ops, new: op_files, changes_data: !commits.is_empty() };
            let events = Replacement { old: events, new: event_files, ..ops };
            let mut rewritten = Thinned { commits: commits.len() as u64, ..Thinned::default() };
            // Operations first: a compact commit that a reader sees has its records.
            let is_done = self.replace(Table::Ops, &ops).await?
                && self.replace(Table::Events, &events).await?;
            if is_done {
                for files in [ops, events] {
                    rewritten.files += files.old.len() as u64;
                    rewritten.bytes_before += bytes(&files.old);
                    rewritten.bytes_after += bytes(&files.new);
                }
                return Ok(rewritten);
            }
        }
        Err(ArchiveError::new(Table::Events.name(), ArchiveFault::Contention(MAX_ATTEMPTS)))
    }
}

/// The commits that can be stored in compact form.
pub(crate) struct Plan {
    /// The commits by day: a keyed hash of account and arrival.
    days: BTreeMap<Date, HashSet<u64>>,
    kept: u64,
    is_complete: bool,
    hasher: RandomState,
}

impl Plan {
    /// The plan without a commit.
    pub(crate) fn empty() -> Self {
        Self { days: BTreeMap::new(), kept: 0, is_complete: true, hasher: RandomState::new() }
    }

    fn hash(&self, did: &str, arrival: i64) -> u64 {
        self.hasher.hash_one((did, arrival))
    }
}

/// A commit that its chain proves, if its signature is right.
struct Planned {
    /// The number of its account in this plan.
    account: usize,
    day: Date,
    hash: u64,
}

/// Finds the commits that chains prove.
struct Planner {
    plan: Plan,
    before: i64,
    decoder: Decoder,
    ops: OpsOfCommits,
    chains: Chains,
    /// The trees from which chains begin.
    trees: RecordTrees,
    signatures: SignatureBatch<usize>,
    planned: Vec<Planned>,
    account: usize,
    did: Box<str>,
    /// Accounts of which nothing is made compact: a signature is wrong, or commits that are compact already would not
    /// be proved any more.
    failed: HashSet<usize>,
}

impl Planner {
    async fn plan(archive: &Archive, before: i64) -> Result<Plan, ArchiveError> {
        let all = Selection::default();
        let mut planner = Self {
            plan: Plan::empty(),
            before,
            decoder: field_decoder(),
            ops: OpsOfCommits::open(archive, &all).await?,
            chains: Chains::default(),
            trees: RecordTrees::open(archive, &all).await?,
            signatures: SignatureBatch::new(),
            planned: Vec::new(),
            account: 0,
            did: Box::default(),
            failed: HashSet::new(),
        };
        let mut scan: Scan<EventColumns> = archive.scan(&all).await?;
        let mut next = scan.next().await?.map(EventRow);
        let mut is_repeated = false;
        while let Some(row) = next.take() {
            next = scan.next().await?.map(EventRow);
            // Two writers have given one number: the operations of the two cannot be told apart.
            let repeats = next.as_ref().is_some_and(|next| {
                let (event, next) = (row.event(), next.event());
                (event.did, event.arrival) == (next.did, next.arrival)
            });
            let is_single = !std::mem::replace(&mut is_repeated, repeats) && !repeats;
            if planner.begin_account(&row) && planner.planned.len() >= MAX_PLANNED {
                planner.plan.is_complete = false;
                break;
            }
            planner.add(&row, is_single).await?;
        }
        Ok(planner.finish())
    }

    /// Whether the row is the first one of an account.
    fn begin_account(&mut self, row: &EventRow) -> bool {
        let did = row.event().did.unwrap_or_default();
        let is_first = *self.did != *did;
        if is_first {
            self.did = did.into();
            self.account += 1;
        }
        is_first
    }

    async fn add(&mut self, row: &EventRow, is_single: bool) -> Result<(), ArchiveError> {
        let event = row.event();
        let (true, Some(did)) = (event.is_verified() && event.kind == "#commit", event.did) else {
            return Ok(());
        };
        if row.form() == COMPACT && !self.follow(row, did).await? {
            self.failed.insert(self.account);
        }
        let is_due = row.form() == FULL && event.received < self.before;
        if is_due && !(is_single && self.try_commit(&event, did).await?) {
            self.plan.kept += 1;
        }
        Ok(())
    }

    /// Follows a compact commit; whether it is still proved.
    async fn follow(&mut self, row: &EventRow, did: &str) -> Result<bool, ArchiveError> {
        let ops = ops_of_rows(&self.ops.at(did, row.event().arrival).await?);
        let (Some(commit), Ok(ops)) = (row.commit(), ops) else { return Ok(false) };
        let commit = ChainCommit { did, rev: commit.rev, since: row.since(), ops };
        Ok(self.trees.apply(&mut self.chains, commit).await?.is_ok())
    }

    /// Plans a commit, if its chain proves it.
    async fn try_commit(
        &mut self,
        event: &ArchivedEvent<'_>,
        did: &str,
    ) -> Result<bool, ArchiveError> {
        let key = event.key.and_then(|key| CompressedKey::from_did_key(key).ok());
        let (Ok(Event::Commit(commit)), Some(key)) = (self.decoder.decode(event.frame), key) else {
            return Ok(false);
        };
        let object = commit_block(&commit).and_then(|block| CommitObject::parse(block).ok());
        let (Some(object), Ok(ops)) = (object, ops_of_frame(&commit)) else { return Ok(false) };
        if (object.did, object.rev, commit.repo) != (did, commit.rev, did) {
            return Ok(false);
        }
        let chained = ChainCommit { did, rev: commit.rev, since: commit.since, ops };
        let Ok(data) = self.trees.apply(&mut self.chains, chained).await? else { return Ok(false) };
        if data != object.data {
            self.chains.undo();
            return Ok(false);
        }
        let message = object.signing_bytes().to_vec();
        self.signatures.push(self.account, message, object.sig, key);
        let day = day_of(event.received);
        let hash = self.plan.hash(did, event.arrival);
        self.planned.push(Planned { account: self.account, day, hash });
        if self.signatures.is_full() {
            self.verify_signatures();
        }
        Ok(true)
    }

    fn verify_signatures(&mut self) {
        let wrong = self.signatures.verify().filter(|(_, verdict)| verdict.is_err());
        self.failed.extend(wrong.map(|(account, _)| account));
    }

    fn finish(mut self) -> Plan {
        self.verify_signatures();
        for Planned { account, day, hash } in self.planned {
            if self.failed.contains(&account) {
                self.plan.kept += 1;
            } else {
                self.plan.days.entry(day).or_default().insert(hash);
            }
        }
        self.plan
    }
}

/// The rows of a day that are being rewritten.
struct Rewrite<'a> {
    events: Scan<EventColumns>,
    ops: Scan<OpColumns>,
    event_files: MergedFiles<'a, EventColumns>,
    op_files: MergedFiles<'a, OpColumns>,
    event_rows: EventRows,
    op_rows: OpRows,
    decoder: Decoder,
}

impl<'a> Rewrite<'a> {
    async fn open(
        archive: &'a Archive,
        day: Date,
        [events, ops]: [&[Add]; 2],
    ) -> Result<Self, ArchiveError> {
        Ok(Self {
            events: archive.scan_files(events).await?,
            ops: archive.scan_files(ops).await?,
            event_files: MergedFiles::create(archive, day)?,
            op_files: MergedFiles::create(archive, day)?,
            event_rows: EventRows::default(),
            op_rows: OpRows::default(),
            decoder: field_decoder(),
        })
    }

    async fn run(&mut self, plan: &Plan, commits: &HashSet<u64>) -> Result<(), ArchiveError> {
        while let Some(row) = self.events.next().await? {
            let place = row.columns().key(row.index());
            let row = EventRow(row);
            let event = row.event();
            let is_planned = event.did.is_some_and(|did| {
                commits.contains(&plan.hash(did, event.arrival)) && row.form() == FULL
            });
            // Those of events that another writer has not committed yet, and of the events before.
            self.keep_ops(&place).await?;
            if is_planned {
                self.write_compact(&event).await?;
            } else {
                self.event_files.rows().keep(&row.0);
            }
            if self.event_files.rows().is_full() {
                self.event_files.write(self.event_rows.finish())?;
                if self.event_files.is_full() {
                    self.event_files.next_file().await?;
                }
            }
        }
        let end = Key { did: Some(END.into()), number: i64::MAX, text: None };
        self.keep_ops(&end).await
    }

    /// Keeps the operations before a place as they are.
    async fn keep_ops(&mut self, place: &Key) -> Result<(), ArchiveError> {
        while let Some(op) = self.ops.next_before(place).await? {
            self.op_files.rows().keep(&op);
            self.write_ops().await?;
        }
        Ok(())
    }

    async fn write_ops(&mut self) -> Result<(), ArchiveError> {
        if self.op_files.rows().is_full() {
            self.op_files.write(self.op_rows.finish())?;
            if self.op_files.is_full() {
                self.op_files.next_file().await?;
            }
        }
        Ok(())
    }

    /// Writes a commit in compact form, and its operations with their records.
    async fn write_compact(&mut self, event: &ArchivedEvent<'_>) -> Result<(), ArchiveError> {
        let unreadable = || {
            let reason = "a commit that was read before cannot be read";
            ArchiveError::new(Table::Events.name(), ArchiveFault::Row { row: 0, reason })
        };
        let decoded = self.decoder.decode(event.frame).map_err(|_| unreadable())?;
        let (Event::Commit(commit), Some(did)) = (&decoded, event.did) else {
            return Err(unreadable());
        };
        let block = commit_block(commit).ok_or_else(unreadable)?;
        let object = CommitObject::parse(block).map_err(|_| unreadable())?;
        let form = Form::Compact { sig: object.sig, commit_block: unusual_block(&object, block) };
        self.event_rows.push(event, &Fields::of(Some(&decoded)), &form);
        self.event_files.rows().build(1, EVENT_BYTES);
        self.op_rows.push_records(did, event.arrival, commit);
        self.op_files.rows().build(commit.ops.len(), event.frame.len());
        // The rows in their place have no records.
        let end = event.arrival.saturating_add(1);
        let place = Key { did: Some(did.into()), number: end, text: None };
        self.ops.skip_to(&place).await?;
        self.write_ops().await
    }

    /// Stores the files.
    async fn finish(mut self) -> Result<NewFiles, ArchiveError> {
        self.event_files.write(self.event_rows.finish())?;
        self.event_files.next_file().await?;
        self.op_files.write(self.op_rows.finish())?;
        self.op_files.next_file().await?;
        Ok((self.event_files.added, self.op_files.added))
    }
}

/// The files of `events` and of `ops`.
type NewFiles = (Vec<Add>, Vec<Add>);

/// The block of the commit object.
fn commit_block<'a>(commit: &Commit<'a>) -> Option<&'a [u8]> {
    let is_object = |cid: codec::CidRef<'_>| cid == commit.commit.as_cid_ref();
    commit.blocks.iter().find(|block| is_object(block.cid)).map(|block| block.data)
}

/// Text after every DID.
const END: &str = "e";

/// Bytes of a row of `events` in compact form, about.
const EVENT_BYTES: usize = 256;

/// Commits of which a plan is made at a time: some 50 bytes each.
const MAX_PLANNED: usize = 2_000_000;

/// Attempts while other writers change the files.
const MAX_ATTEMPTS: u32 = 100;

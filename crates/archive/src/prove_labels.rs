//! Proves the labels of an archive again: the columns give the bytes that the source has signed, under the key of the time.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use crypto::CompressedKey;
use verify::labels::{LabelJudge, ReceivedLabel, SourceKeys};

use crate::archive::Archive;
use crate::error::ArchiveError;
use crate::event::is_verified;
use crate::hidden::HideList;
use crate::key_history::{KeyHistories, KeyHistory};
use crate::label_fields::LabelFields;
use crate::label_rows::LabelColumns;
use crate::rule::{BrokenRule, Rule};
use crate::scan::Scan;
use crate::table_rows::{Key, Row};
use crate::table_scan::Selection;
use crate::verification::{Finding, Verification};

impl Archive {
    /// Proves the verified labels of the selected accounts, and about them.
    pub(crate) async fn prove_labels(
        &self,
        selection: &Selection,
        verification: &mut Verification<'_>,
    ) -> Result<(), ArchiveError> {
        let mut rows: Scan<LabelColumns> = self.scan(selection).await?;
        let list = self.hide_list_without(&selection.without).await?;
        let mut keys = LabelKeyHistories { archive: self, selection, known: HashMap::new() };
        let (mut prover, mut repeats) = (LabelProver::new(), Repeats::default());
        while let Some(row) = rows.next().await? {
            let accounts = [row.did(), row.fields().src];
            if row.received() < verification.since() || !verification.has_row_of(&accounts) {
                continue;
            }
            verification.report.labels += 1;
            let broken = match check_columns(&row).or_else(|| repeats.check(&row)) {
                None => check_erased(&row, &list),
                broken => broken,
            };
            let broken = match broken {
                None if is_verified(row.verdict()) => keys.check(&row, verification).await?,
                broken => broken,
            };
            match broken {
                Some(broken) => verification.refuse(finding(&row, broken)),
                None if is_verified(row.verdict()) => prover.add(row, verification),
                None => {
                    let code = row.verdict().to_owned();
                    *verification.report.unverified.entry(code).or_default() += 1;
                }
            }
        }
        prover.prove(verification);
        Ok(())
    }
}

/// Checks that the columns that repeat others match them.
fn check_columns(row: &Row<LabelColumns>) -> Option<BrokenRule> {
    let fields = row.fields();
    if row.label().is_some_and(|label| LabelFields::of(label) != fields) {
        let message = "a column contradicts the bytes of the label".to_owned();
        return Some((Rule::Derived.code(), message));
    }
    let account = fields.account();
    (row.did() != account).then(|| {
        let name = |did: Option<&str>| did.unwrap_or("no account").to_owned();
        let message =
            format!("the label is about {}, the row about {}", name(account), name(row.did()));
        (Rule::Account.code(), message)
    })
}

fn check_erased(row: &Row<LabelColumns>, list: &HideList) -> Option<BrokenRule> {
    let accounts = [row.did(), row.fields().src];
    accounts.into_iter().flatten().any(|did| list.is_erased(did)).then(|| {
        let message = "an account was erased, and has a row again: erase it again";
        (Rule::Erased.code(), message.to_owned())
    })
}

/// The keys of sources, by their histories.
struct LabelKeyHistories<'a> {
    archive: &'a Archive,
    selection: &'a Selection,
    known: HashMap<Box<str>, Option<KeyHistory>>,
}

impl LabelKeyHistories<'_> {
    /// Checks that the source had the key when the label was received, if there is a history of it.
    async fn check(
        &mut self,
        row: &Row<LabelColumns>,
        verification: &mut Verification<'_>,
    ) -> Result<Option<BrokenRule>, ArchiveError> {
        let (Some(src), Some(key)) = (row.fields().src, row.key()) else { return Ok(None) };
        if !self.known.contains_key(src) {
            let without = &self.selection.without;
            let history = KeyHistories::of_account(self.archive, src, without).await?;
            if self.known.len() >= MAX_HISTORIES {
                self.known.clear();
            }
            self.known.insert(src.into(), history);
        }
        let Some(Some(history)) = self.known.get(src) else { return Ok(None) };
        verification.report.compared_keys += 1;
        Ok(history.check_label(key, row.received()).err())
    }
}

/// Finds labels that the table has twice, where another program has repeated rows.
#[derive(Default)]
struct Repeats {
    place: Option<Key>,
    /// The labels of the place.
    origins: HashSet<Origin>,
}

/// Service, host, number of the message and index in it.
type Origin = (Arc<str>, Arc<str>, i64, i16);

impl Repeats {
    fn check(&mut self, row: &Row<LabelColumns>) -> Option<BrokenRule> {
        let place = Key { did: row.did().map(Box::from), number: row.received(), text: None };
        if self.place.as_ref() != Some(&place) {
            self.origins.clear();
            self.place = Some(place);
        }
        let (service, host, seq, idx) = row.origin();
        let is_new = self.origins.len() >= MAX_ORIGINS
            || self.origins.insert((service.into(), host.into(), seq, idx));
        let message = || format!("label {idx} of message {seq} is in the table twice");
        (!is_new).then(|| (Rule::Repeated.code(), message()))
    }
}

/// Judges labels again, many at a time.
struct LabelProver {
    judge: LabelJudge,
    batch: Vec<Waiting>,
    bytes: usize,
}

/// A row that is yet to be proved.
struct Waiting {
    row: Row<LabelColumns>,
    label: Vec<u8>,
    key: CompressedKey,
}

impl LabelProver {
    fn new() -> Self {
        let seed = uuid::Uuid::new_v4().into_bytes();
        Self { judge: LabelJudge::new(seed, false), batch: Vec::new(), bytes: 0 }
    }

    /// Proves a row, together with others.
    fn add(&mut self, row: Row<LabelColumns>, verification: &mut Verification<'_>) {
        let key = row.key().map(CompressedKey::from_did_key);
        let Some(Ok(key)) = key else {
            let message = format!("key {}: no did:key", row.key().unwrap_or("null"));
            return verification.refuse(finding(&row, (Rule::Value.code(), message)));
        };
        let label = row.received_bytes().into_owned();
        self.bytes += label.len();
        self.batch.push(Waiting { row, label, key });
        if self.batch.len() >= BATCH_LEN || self.bytes >= BATCH_BYTES {
            self.prove(verification);
        }
    }

    /// Proves the rows so far. A source has one key in a batch of the judge.
    fn prove(&mut self, verification: &mut Verification<'_>) {
        let mut batch = std::mem::take(&mut self.batch);
        self.bytes = 0;
        batch.sort_by_key(|waiting| *waiting.key.as_bytes());
        let mut rest = &batch[..];
        while !rest.is_empty() {
            let (count, keys) = with_one_key(rest);
            let (some, later) = rest.split_at(count);
            self.prove_some(some, &keys, verification);
            rest = later;
        }
    }

    fn prove_some(
        &mut self,
        batch: &[Waiting],
        keys: &HashMap<Box<str>, SourceKeys>,
        verification: &mut Verification<'_>,
    ) {
        let received = |waiting: &Waiting| waiting.row.received();
        let labels: Vec<ReceivedLabel<'_>> = { batch.iter() }
            .map(|of| ReceivedLabel { bytes: &of.label, service: Some(of.row.service()) })
            .collect();
        let now = batch.iter().map(received).max().unwrap_or_default();
        let outcomes = self.judge.judge(&labels, keys, now);
        for (waiting, outcome) in batch.iter().zip(outcomes) {
            let verdict = waiting.row.verdict();
            let broken = match outcome {
                Err(why) => Some((why.code(), why.to_string())),
                Ok(judged) => {
                    let code = judged.standing_at(received(waiting)).code();
                    let message = || format!("the label is {code}, the row says {verdict}");
                    (code != verdict).then(|| (Rule::Derived.code(), message()))
                }
            };
            match broken {
                None => verification.report.proved_labels += 1,
                Some(broken) => verification.refuse(finding(&waiting.row, broken)),
            }
        }
    }
}

/// The number of first rows of which every source has one key, and these keys.
fn with_one_key(batch: &[Waiting]) -> (usize, HashMap<Box<str>, SourceKeys>) {
    let mut keys: HashMap<Box<str>, SourceKeys> = HashMap::new();
    for (count, waiting) in batch.iter().enumerate() {
        let src = waiting.row.fields().src.unwrap_or_default();
        match keys.get(src) {
            Some(known) if known.current != Some(waiting.key) => return (count, keys),
            Some(_) => {}
            None => drop(keys.insert(src.into(), SourceKeys::of(waiting.key))),
        }
    }
    (batch.len(), keys)
}

fn finding(row: &Row<LabelColumns>, (code, message): BrokenRule) -> Finding {
    let (file, number) = row.place();
    let did = row.fields().src.map(str::to_owned);
    Finding { file: file.to_owned(), row: Some(number), did, code, message }
}

/// Histories of keys in memory.
const MAX_HISTORIES: usize = 4_096;

/// Labels of one place that are compared: more than a batch of the follower has.
const MAX_ORIGINS: usize = 65_536;

/// Labels judged together.
const BATCH_LEN: usize = 4_096;

/// Bytes of labels after which no more are judged together.
const BATCH_BYTES: usize = 4 << 20;

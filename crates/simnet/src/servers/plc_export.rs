//! The export of the PLC directory: `/export?count=N&after=SEQ`, all operations in one order.
//!
//! Operations get their numbers when the export is first requested after their registration: operations of the accounts by
//! time, then the lines that a test has added. A number is never given twice, and some are skipped; but a line that is added
//! with a number keeps it, and a directory may begin its numbers again.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::fault::Fault;
use super::http::{self, HttpRequest, HttpResponse, QueryParams};
use super::network::{NetworkState, lock};
use super::plc::operation;
use super::spec::Server;
use crate::time::datetime;

/// The numbered operations.
#[derive(Debug, Default)]
pub(super) struct ExportLog {
    entries: Vec<ExportEntry>,
    /// Numbers of numbered operations by account.
    numbered: HashMap<usize, usize>,
    /// Lines that were added and have no number yet.
    added: Vec<Value>,
    /// Streams after a lower number are refused.
    stream_begins: u64,
}

#[derive(Debug)]
struct ExportEntry {
    seq: u64,
    content: EntryContent,
}

#[derive(Debug)]
enum EntryContent {
    /// An account and the index of its operation.
    Operation { account: usize, index: usize },
    /// A line without its number.
    Added(Value),
}

impl ExportLog {
    /// Adds a line, which gets its number unless it has one.
    pub(super) fn add(&mut self, line: Value) {
        self.added.push(line);
    }

    /// Lets streams begin after this number or a later one.
    pub(super) fn begin_streams(&mut self, seq: u64) {
        self.stream_begins = seq;
    }

    /// Forgets all numbers and the lines that were added.
    pub(super) fn restart(&mut self) {
        *self = Self::default();
    }

    /// Numbers the operations that have none.
    fn update(&mut self, network: &NetworkState) {
        let mut new = Vec::new();
        for account in 0..network.account_count() {
            let times = network.log_micros(account);
            let first = self.numbered.insert(account, times.len()).unwrap_or(0);
            let entries = times.into_iter().enumerate().skip(first);
            new.extend(entries.map(|(index, micros)| (micros, account, index)));
        }
        new.sort_unstable();
        for (_, account, index) in new {
            self.push(EntryContent::Operation { account, index });
        }
        for line in std::mem::take(&mut self.added) {
            self.push(EntryContent::Added(line));
        }
    }

    /// The entries after a number, without the newest ones if this fault is due.
    fn entries_after(
        &self,
        after: u64,
        network: &NetworkState,
        behind: Fault,
    ) -> impl Iterator<Item = &ExportEntry> {
        let missing = network.faults.inject(Server::Plc, behind).unwrap_or(0);
        let shown = self.entries.len().saturating_sub(missing as usize);
        let first = self.entries.partition_point(|entry| entry.seq <= after).min(shown);
        self.entries[first..shown].iter()
    }

    fn push(&mut self, content: EntryContent) {
        let last = self.entries.last().map_or(0, |entry| entry.seq);
        // Transactions of the directory that fail use up numbers.
        let is_gap = last > 0 && last.is_multiple_of(GAP_EVERY);
        let next = last + if is_gap { 2 } else { 1 };
        let seq = match &content {
            EntryContent::Added(line) => line["seq"].as_u64().unwrap_or(next),
            EntryContent::Operation { .. } => next,
        };
        self.entries.push(ExportEntry { seq, content });
    }
}

/// The lines of the stream after a number, at most `count`, with their numbers.
pub(super) fn lines_after(network: &NetworkState, after: u64, count: usize) -> Vec<(u64, String)> {
    let mut log = network.export.lock().expect(super::fault::UNPOISONED);
    log.update(network);
    let entries = log.entries_after(after, network, Fault::StreamBehind).take(count);
    entries.map(|entry| (entry.seq, line(network, entry).to_string())).collect()
}

/// The numbers between which a stream may begin: that of the oldest operation that it may have, and of the newest.
pub(super) fn stream_range(network: &NetworkState) -> (u64, u64) {
    let mut log = network.export.lock().expect(super::fault::UNPOISONED);
    log.update(network);
    let newest = log.entries_after(0, network, Fault::StreamBehind).last();
    (log.stream_begins, newest.map_or(0, |entry| entry.seq))
}

/// The response to `/export`.
pub(super) fn response(network: &NetworkState, request: &HttpRequest) -> HttpResponse {
    let query = QueryParams::of(request);
    let number = |name: &str, default: u64| match query.get(name) {
        Some(text) => text.parse::<u64>().ok(),
        None => Some(default),
    };
    let (Some(count), Some(after)) = (number("count", 10), number("after", 0)) else {
        return http::json(400, &json!({ "message": "count and after must be integers" }));
    };
    let mut log = network.export.lock().expect(super::fault::UNPOISONED);
    log.update(network);
    let entries = log.entries_after(after, network, Fault::PageBehind);
    let page = entries.take(count.clamp(1, MAX_COUNT) as usize);
    let lines: Vec<String> = page.map(|entry| line(network, entry).to_string()).collect();
    http::bytes(200, "application/jsonlines", lines.join("\n"))
}

fn line(network: &NetworkState, entry: &ExportEntry) -> Value {
    let mut line = match &entry.content {
        EntryContent::Added(line) => line.clone(),
        EntryContent::Operation { account, index } => {
            let account = network.account(*account).expect("accounts stay");
            let account = lock(&account);
            let logged = &account.log[*index];
            json!({
                "did": account.did(),
                "operation": operation(logged),
                "cid": logged.operation.cid().to_string(),
                "nullified": false,
                "createdAt": datetime(logged.micros),
            })
        }
    };
    line["type"] = "sequenced_op".into();
    line["seq"] = entry.seq.into();
    line
}

/// The maximum number of lines of a page.
const MAX_COUNT: u64 = 1000;

/// The number of operations between skipped numbers.
const GAP_EVERY: u64 = 50;

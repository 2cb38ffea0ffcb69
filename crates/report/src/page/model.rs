//! The data of the page's scripts: every row of the newest run, and data common to many rows once.

use std::collections::HashMap;

use results::terminal::{self, speed};
use results::{Chunks, Outcome, Parity, Row};
use serde::Serialize;

use super::{View, anchor, hostile, repeat, sizes};
use crate::picture::{self, stage_names, stage_times};
use crate::ratios::Name;
use crate::{about, standing};

/// The data of the scripts.
#[derive(Debug, Serialize)]
pub(super) struct Model<'r> {
    peers: Vec<PeerModel<'r>>,
    tasks: Vec<TaskModel<'r>>,
    sizes: Vec<SizeModel<'r>>,
    hostile: HostileModel<'r>,
    /// The command before and after its peers.
    command: [String; 2],
}

#[derive(Debug, Serialize)]
struct PeerModel<'r> {
    name: &'r str,
    /// The name for a shell.
    quoted: String,
    language: &'r str,
    version: &'r str,
    #[serde(skip_serializing_if = "is_false")]
    ours: bool,
}

/// A task with passes.
#[derive(Debug, Serialize)]
struct TaskModel<'r> {
    name: &'r str,
    quoted: String,
    title: &'r str,
    anchor: String,
    /// The letters and the names of the checks.
    checks: Vec<(char, &'r str)>,
    groups: Vec<GroupModel>,
    /// The distinct texts of counts and notes, which rows refer to by their index.
    texts: Vec<String>,
    rows: Vec<RowModel<'r>>,
}

/// Rows that did the same work.
#[derive(Debug, Serialize)]
struct GroupModel {
    name: String,
    words: &'static str,
    /// The unit of the numbers; `ms` for times.
    measure: String,
    /// The index of the row that ratios refer to.
    #[serde(skip_serializing_if = "Option::is_none")]
    against: Option<usize>,
}

/// A row as a list, since names would be a third of the data: its peer, variant, group, units, the nanoseconds of the passes,
/// counts, and optional fields.
type RowModel<'r> = (usize, &'r str, usize, u64, &'r [u64], usize, RowExtras<'r>);

/// A missing field is false, empty or unknown.
#[derive(Debug, Serialize)]
struct RowExtras<'r> {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    checks: Vec<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<usize>,
    /// Why it is not ranked.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    batch: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    threads: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mbs: Option<u64>,
    /// Medians in milliseconds.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    stages: Vec<(&'r str, f64)>,
    /// Nanoseconds per unit over parts of a pass: the median, 99 of 100, the slowest.
    #[serde(skip_serializing_if = "Option::is_none")]
    chunks: Option<[u64; 3]>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allocations: Option<f64>,
}

/// A format's size in a part of the corpus: bytes per event.
#[derive(Debug, Serialize)]
struct SizeModel<'r> {
    part: &'r str,
    format: &'r str,
    peer: usize,
    bytes: [f64; 4],
}

/// The hostile cases, and the outcomes of the peers as one letter per case.
#[derive(Debug, Default, Serialize)]
struct HostileModel<'r> {
    peers: Vec<usize>,
    /// The name and the right outcome.
    cases: Vec<(&'r str, &'static str)>,
    outcomes: Vec<String>,
}

fn is_false(flag: &bool) -> bool {
    !flag
}

pub(super) fn of<'r>(view: &View<'r>) -> Model<'r> {
    let peers = peers(view);
    let tasks = view.tasks().into_iter().filter_map(|(task, rows)| {
        let timed: Vec<&Row> =
            rows.into_iter().filter(|row| row.sizes.is_none() && row.cases.is_empty()).collect();
        (!timed.is_empty()).then(|| of_task(view, &peers, task, &timed))
    });
    let tasks = tasks.collect();
    let size = |row: &'r Row| {
        let (sizes, part) = (row.sizes?, sizes::part(row)?);
        let format = row.variant.strip_suffix(part)?.strip_suffix('@')?;
        let bytes = [sizes.raw, sizes.gzip6, sizes.zstd3, sizes.framed_zstd3];
        let bytes = bytes.map(|size| rounded(picture::per_unit(row, size)));
        Some(SizeModel { part, format, peer: peers[row.peer.as_str()], bytes })
    };
    Model {
        sizes: view.newest.rows.iter().filter_map(size).collect(),
        hostile: hostile_model(view, &peers),
        command: [repeat::PROGRAM.to_owned(), repeat::settings(view.newest).join(" ")],
        tasks,
        peers: peer_models(view),
    }
}

/// The indexes of the peers, in the order in which they occur.
fn peers<'r>(view: &View<'r>) -> HashMap<&'r str, usize> {
    let mut peers = HashMap::new();
    for row in &view.newest.rows {
        let next = peers.len();
        peers.entry(row.peer.as_str()).or_insert(next);
    }
    peers
}

fn peer_models<'r>(view: &View<'r>) -> Vec<PeerModel<'r>> {
    let mut seen = std::collections::HashSet::new();
    let first = view.newest.rows.iter().filter(|row| seen.insert(row.peer.as_str()));
    let model = |row: &'r Row| PeerModel {
        name: &row.peer,
        quoted: repeat::quoted(&row.peer),
        language: &row.language,
        version: &row.version,
        ours: results::is_ours(&row.peer),
    };
    first.map(model).collect()
}

fn of_task<'r>(
    view: &View<'r>,
    peers: &HashMap<&str, usize>,
    task: &'r str,
    rows: &[&'r Row],
) -> TaskModel<'r> {
    let mut checks: Vec<(char, &str)> = terminal::checks_of(task);
    for check in rows.iter().flat_map(|row| &row.checks) {
        if !checks.iter().any(|(_, known)| known == check) {
            checks.push(('?', check));
        }
    }
    let mut model = TaskModel {
        name: task,
        quoted: repeat::quoted(task),
        title: super::title(task),
        anchor: anchor(task),
        checks,
        groups: Vec::new(),
        texts: Vec::new(),
        rows: Vec::new(),
    };
    for of_group in rows.chunk_by(|a, b| a.group() == b.group()) {
        model.groups.push(group(view, task, of_group, rows));
        for row in of_group {
            let row = model.row(peers, row);
            model.rows.push(row);
        }
    }
    model
}

fn group(view: &View<'_>, task: &str, of_group: &[&Row], rows: &[&Row]) -> GroupModel {
    let name = of_group[0].group();
    let words = about::group(task, &name).unwrap_or_default();
    let ratios = view.newest_ratios();
    let against = of_group.iter().find_map(|row| ratios.get(Name::of(row)));
    let against = against.map(|(_, row)| Name::of(row));
    let against = against.and_then(|name| rows.iter().position(|row| Name::of(row) == name));
    GroupModel { name, words, measure: speed::heading(of_group), against }
}

impl<'r> TaskModel<'r> {
    fn row(&mut self, peers: &HashMap<&str, usize>, row: &'r Row) -> RowModel<'r> {
        let made = |(_, check): &(char, &str)| row.checks.iter().any(|made| made == check);
        let checks = self.checks.iter().enumerate().filter(|(_, check)| made(check));
        let checks = checks.map(|(at, _)| at).collect();
        let counts = self.text(counts(row));
        let stages = stage_times(row, &stage_names(&[row]));
        let extras = RowExtras {
            checks,
            note: row.note.as_ref().map(|note| self.text(note.clone())),
            fault: fault(row),
            batch: row.batch_label(),
            threads: row.threads(),
            mbs: row
                .mb_per_s
                .filter(|_| matches!(self.name, "decode" | "repo"))
                .map(|mbs| mbs.round() as u64),
            stages: stages.into_iter().map(|(name, ms)| (name, (1e2 * ms).round() / 1e2)).collect(),
            chunks: row.chunks.map(whole),
            allocations: row.allocations.map(rounded),
        };
        let peer = peers[row.peer.as_str()];
        (peer, &row.variant, self.groups.len() - 1, row.units, &row.passes_ns, counts, extras)
    }

    /// The index of a text.
    fn text(&mut self, text: String) -> usize {
        let known = self.texts.iter().position(|known| *known == text);
        known.unwrap_or_else(|| {
            self.texts.push(text);
            self.texts.len() - 1
        })
    }
}

/// The counts of a row with their names.
fn counts(row: &Row) -> String {
    let text = |name: &str| match (row.counts.get(name), row.counts.text(name)) {
        (Some(number), _) => format!("{name} {}", terminal::thousands(number as f64)),
        (None, text) => format!("{name} {}", text.unwrap_or_default()),
    };
    row.counts.names().map(text).collect::<Vec<_>>().join(", ")
}

/// Why a row is not ranked.
fn fault(row: &Row) -> Option<&'static str> {
    match row.parity {
        Parity::Ok if row.per_s.is_none() => Some("failed in a pass"),
        Parity::Ok => None,
        Parity::Mismatch => Some("mismatch"),
        Parity::Unproven => Some("failed"),
    }
}

fn hostile_model<'r>(view: &View<'r>, peers: &HashMap<&str, usize>) -> HostileModel<'r> {
    let rows: Vec<&Row> = standing::rows_of(view.newest, "hostile").iter().collect();
    let cases = hostile::cases(&rows);
    let names = hostile::peers(&rows);
    let outcomes = names.iter().map(|peer| {
        let of_peer = rows.iter().filter(|row| row.peer == *peer).flat_map(|row| &row.cases);
        let known: HashMap<&str, Outcome> =
            of_peer.map(|case| (case.name.as_str(), case.outcome)).collect();
        cases.iter().map(|case| letter(known.get(case.name.as_str()))).collect()
    });
    HostileModel {
        outcomes: outcomes.collect(),
        peers: names.iter().map(|name| peers[name]).collect(),
        cases: cases.iter().map(|case| (case.name.as_str(), case.must())).collect(),
    }
}

fn letter(outcome: Option<&Outcome>) -> char {
    match outcome {
        None => '-',
        Some(Outcome::Accepted) => 'a',
        Some(Outcome::Refused) => 'r',
        Some(Outcome::Crashed) => 'c',
        Some(Outcome::Hung) => 'h',
    }
}

/// Without digits after the point.
fn whole(chunks: Chunks) -> [u64; 3] {
    [chunks.p50_ns, chunks.p99_ns, chunks.max_ns].map(|ns| ns.round() as u64)
}

/// With one digit after the point.
fn rounded(number: f64) -> f64 {
    (10.0 * number).round() / 10.0
}

//! How our rows stand against the fastest other peer at the same work: one unit at a time, many in a call, with a cache or an
//! index, and the geometric mean over tasks.

use results::{Results, Row};

/// Our rows of a kind of work, and the fastest row of any other peer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Standing<'r> {
    /// Our fastest row that takes one unit at a time and has nothing prepared.
    pub(crate) single: &'r Row,
    /// Our fastest row that takes many units in a call and has nothing prepared.
    pub(crate) batch: Option<&'r Row>,
    /// Our fastest row with cached keys, an index or a builder.
    pub(crate) prepared: Option<&'r Row>,
    /// The fastest row of another peer.
    pub(crate) peer: &'r Row,
    /// How many other peers did the work.
    pub(crate) peers: usize,
}

impl<'r> Standing<'r> {
    /// The standing at a kind of work, by the rows of its task in the order of the report.
    pub(crate) fn of(rows: &'r [Row], work: &str) -> Option<Self> {
        let ranked: Vec<&Row> =
            rows.iter().filter(|row| represents(row) && row.work() == work).collect();
        let (ours, others): (Vec<&Row>, Vec<&Row>) =
            ranked.into_iter().partition(|row| results::is_ours(&row.peer));
        let fastest = |is_of_kind: fn(&Row) -> bool| {
            let is_ours = |row: &&&Row| row.peer == results::PEER && is_of_kind(row);
            ours.iter().filter(is_ours).copied().max_by(|a, b| speed(a).total_cmp(&speed(b)))
        };
        let peer = others.iter().copied().max_by(|a, b| speed(a).total_cmp(&speed(b)))?;
        let mut peers: Vec<&str> = others.iter().map(|row| row.peer.as_str()).collect();
        peers.sort();
        peers.dedup();
        Some(Self {
            single: fastest(|row| !row.is_batch() && !row.is_prepared())?,
            batch: fastest(|row| row.is_batch() && !row.is_prepared()),
            prepared: fastest(Row::is_prepared),
            peer,
            peers: peers.len(),
        })
    }

    /// How many times as fast as the other peer we are with one unit at a time.
    pub(crate) fn single_times(&self) -> f64 {
        times(self.single, self.peer)
    }

    /// The same with many units in a call.
    pub(crate) fn batch_times(&self) -> Option<f64> {
        self.batch.map(|batch| times(batch, self.peer))
    }
}

/// Whether a row may stand for its peer: ranked, of no forced back end, on one core.
pub(crate) fn represents(row: &Row) -> bool {
    row.is_ranked() && !row.is_forced() && row.threads().is_none()
}

fn times(row: &Row, peer: &Row) -> f64 {
    row.median().zip(peer.median()).map_or(0.0, |(row, peer)| row / peer)
}

fn speed(row: &Row) -> f64 {
    row.median().unwrap_or_default()
}

/// The standings at all kinds of work of a task.
pub(crate) fn all_of<'r>(rows: &'r [Row]) -> Vec<Standing<'r>> {
    let mut works: Vec<String> = Vec::new();
    for work in rows.iter().map(Row::work) {
        if !works.contains(&work) {
            works.push(work);
        }
    }
    works.iter().filter_map(|work| Standing::of(rows, work)).collect()
}

/// The rows of a task of sorted results.
pub(crate) fn rows_of<'r>(results: &'r Results, task: &str) -> &'r [Row] {
    let mut tasks = results.rows.chunk_by(|a, b| a.task == b.task);
    tasks.find(|rows| rows[0].task == task).unwrap_or_default()
}

/// Geometric means over tasks of the ratios to the fastest other peer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Means {
    /// Number of tasks.
    pub(crate) tasks: usize,
    /// One unit at a time.
    pub(crate) single: f64,
    /// Many units in a call, where we offer that; one at a time elsewhere.
    pub(crate) batch: f64,
}

impl Means {
    /// The means of the tasks that `counts`: the mean over tasks of their means over kinds of work that two other peers or
    /// more did. `None` without one.
    pub(crate) fn of(results: &Results, counts: fn(&str) -> bool) -> Option<Self> {
        let tasks = results.rows.chunk_by(|a, b| a.task == b.task);
        let carries = |standing: &Standing<'_>| standing.peers >= LEAST_PEERS;
        let of_task = |rows| all_of(rows).into_iter().filter(carries).collect();
        let of_tasks = tasks.filter(|rows| counts(&rows[0].task)).map(of_task);
        let of_tasks: Vec<Vec<Standing<'_>>> =
            of_tasks.filter(|standings: &Vec<_>| !standings.is_empty()).collect();
        let mean = |ratio: fn(&Standing<'_>) -> f64| {
            geometric(of_tasks.iter().map(|standings| geometric(standings.iter().map(ratio))))
        };
        (!of_tasks.is_empty()).then(|| Self {
            tasks: of_tasks.len(),
            single: mean(|standing| standing.single_times()),
            batch: mean(|standing| standing.batch_times().unwrap_or(standing.single_times())),
        })
    }
}

/// Other peers at a kind of work that carries a mean: one slow peer alone says little.
const LEAST_PEERS: usize = 2;

fn geometric(ratios: impl Iterator<Item = f64>) -> f64 {
    let logs: Vec<f64> = ratios.map(f64::ln).collect();
    (logs.iter().sum::<f64>() / logs.len().max(1) as f64).exp()
}

/// A kind of work with a card and a line in the README.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Headline {
    pub(crate) task: &'static str,
    pub(crate) group: &'static str,
    pub(crate) words: &'static str,
}

/// The headline works that the run has, with our standing.
pub(crate) fn headlines(results: &Results) -> Vec<(Headline, Standing<'_>)> {
    let standing = |line: &Headline| Standing::of(rows_of(results, line.task), line.group);
    HEADLINES.iter().filter_map(|line| Some((*line, standing(line)?))).collect()
}

/// The kinds of work without a headline at which another peer is as fast as our rows of one unit at a time, or faster.
pub(crate) fn lost_or_equal(results: &Results) -> Vec<Standing<'_>> {
    let tasks = results.rows.chunk_by(|a, b| a.task == b.task);
    let has_headline =
        |row: &Row| HEADLINES.iter().any(|line| line.task == row.task && line.group == row.work());
    let is_meant =
        |standing: &Standing<'_>| standing.single_times() < EQUAL && !has_headline(standing.single);
    tasks.flat_map(all_of).filter(is_meant).collect()
}

/// The ratio up to which two speeds count as equal.
const EQUAL: f64 = 1.05;

/// Headline works that the run lacks.
pub(crate) fn missing(results: &Results) -> Vec<String> {
    let is_missing =
        |line: &&Headline| Standing::of(rows_of(results, line.task), line.group).is_none();
    HEADLINES
        .iter()
        .filter(is_missing)
        .map(|line| format!("{} {}", line.task, line.group))
        .collect()
}

const fn headline(task: &'static str, group: &'static str, words: &'static str) -> Headline {
    Headline { task, group, words }
}

const HEADLINES: [Headline; 15] = [
    headline("decode", "verified", "decode a frame, every hash checked"),
    headline("decode", "unverified", "decode a frame, hashes trusted"),
    headline("commit", "full", "verify a commit frame by every check"),
    headline("commit", "full@many-accounts", "verify a commit frame, 100,000 accounts"),
    headline("repo", "total", "verify a whole repository"),
    headline("sigs", "full", "verify the signature of a commit, K-256"),
    headline("sigs", "full@mixed", "verify the signature of a commit, both curves"),
    headline("sigs", "full@many-accounts", "verify the signature of a commit, 100,000 accounts"),
    headline("mst", "insert-root/ascending", "insert records into a tree in key order"),
    headline("mst", "insert-root/shuffled", "insert records into a tree in any order"),
    headline("mst", "lookup", "look a record up in a tree"),
    headline("mst", "mixed", "insert, update, delete and look up, interleaved"),
    headline("schnorr", "verify", "verify the signature of a Nostr event"),
    headline("nostr-deserialize", "json", "read a Nostr event from JSON"),
    headline("nostr-validated", "json", "read a Nostr event from JSON and verify it"),
];

//! Baselines: the rows that ratios refer to.

use std::convert::Infallible;
use std::fmt;
use std::str::FromStr;

use crate::Row;
use crate::is_ours;

/// A peer, or one of its variants, that ratios refer to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Baseline {
    peer: String,
    /// `None` for the peer's fastest row of a group.
    variant: Option<String>,
}

impl FromStr for Baseline {
    type Err = Infallible;

    /// Parses `PEER` or `PEER/VARIANT`.
    fn from_str(text: &str) -> Result<Self, Infallible> {
        let (peer, variant) = match text.split_once('/') {
            Some((peer, variant)) => (peer, Some(variant.to_owned())),
            None => (text, None),
        };
        Ok(Self { peer: peer.to_owned(), variant })
    }
}

impl fmt::Display for Baseline {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.variant {
            Some(variant) => write!(f, "{}/{variant}", self.peer),
            None => f.write_str(&self.peer),
        }
    }
}

/// The baseline of the group of `row`, among the sorted `rows` of its task.
pub(super) fn of_group<'r>(
    row: &Row,
    rows: &[&'r Row],
    chosen: Option<&Baseline>,
) -> Option<&'r Row> {
    if chosen.is_none() && row.task.starts_with("nostr-") {
        return of_format(row, rows);
    }
    let group = row.group();
    let peer = match chosen {
        Some(Baseline { peer, variant: Some(variant) }) => {
            let is_chosen = |row: &&&Row| row.peer == *peer && row.variant == *variant;
            return rows.iter().filter(is_chosen).find(|row| row.is_ranked()).copied();
        }
        Some(Baseline { peer, variant: None }) => peer.as_str(),
        None => default_peer(&row.task, &group)?,
    };
    let group = compared_group(&row.task, &group);
    // Rows are sorted by speed.
    let is_baseline = |row: &&&Row| row.peer == peer && row.group() == group && !row.is_forced();
    rows.iter().filter(is_baseline).find(|row| row.is_ranked()).copied()
}

/// The baseline of a format: the fastest other implementation of it, or of JSON if there is none. The baseline of a field
/// is the same field.
fn of_format<'r>(row: &Row, rows: &[&'r Row]) -> Option<&'r Row> {
    let group = row.group();
    let json = match group.split_once('/') {
        Some((_, field)) => format!("json/{field}"),
        None => "json".to_owned(),
    };
    let is_other = |row: &&&Row| !is_ours(&row.peer) && row.is_ranked();
    let fastest = |group: &str| rows.iter().filter(is_other).find(|row| row.group() == group);
    let own = || rows.iter().find(|row| row.group() == json && row.is_ranked());
    fastest(&group).or_else(|| fastest(&json)).or_else(own).copied()
}

/// The peer of the default baseline of a group.
fn default_peer(task: &str, group: &str) -> Option<&'static str> {
    match (task, group) {
        ("decode", "verified") => Some("go-indigo"),
        ("decode", "unverified" | "validate") => Some("rust-raw"),
        ("sigs" | "schnorr", _) => Some("rust-libsecp256k1"),
        ("mst" | "repo" | "commit", _) => Some("go-indigo"),
        _ => None,
    }
}

/// The group of the baseline's row: the same, or the plain way to the same result.
fn compared_group<'g>(task: &str, group: &'g str) -> &'g str {
    match (task, group) {
        ("decode", "validate") => "unverified",
        ("mst", "lookup/batch" | "lookup/indexed" | "lookup/indexed/changing") => "lookup",
        ("mst", "bulk" | "insert-root/ascending/builder") => "insert-root/ascending",
        ("repo", "total/load-car") => "total",
        _ => group,
    }
}

/// The subject of "… has a ranked row" where the default baselines of a task are missing.
pub(super) fn absent(task: &str) -> &'static str {
    match task {
        "decode" => "neither go-indigo nor rust-raw",
        task if task.starts_with("nostr-") => "no peer",
        _ => "no default baseline",
    }
}

//! The task `hostile`: the sums by peer, with the call that was tried; a script shows the matrix of all cases.

use results::{CaseOutcome, Row};

use super::peers::call;
use super::task::needs_scripts;
use crate::html::{Html, Tag, plain_table, tag};

pub(super) fn of(rows: &[&Row]) -> Html {
    Html::from(sums(rows)).and(matrix(rows))
}

fn sums(rows: &[&Row]) -> Tag {
    let headings = [
        "peer",
        "version",
        "input",
        "call",
        "invalid",
        "refused",
        "accepted",
        "crashed",
        "hung",
        "valid",
        "not accepted",
    ];
    let lines = rows.iter().map(|row| {
        let count = |name| row.counts.get(name).unwrap_or_default();
        let [refused, accepted, crashed, hung] =
            ["refused", "accepted", "crashed", "hung"].map(count);
        let invalid = refused.saturating_add(accepted).saturating_add(crashed).saturating_add(hung);
        let valid = row.units.saturating_sub(invalid);
        let numbers = [
            invalid,
            refused,
            accepted,
            crashed,
            hung,
            valid,
            row.valid_refused.unwrap_or_default(),
        ];
        let [a, b, c, d, e, f, g] = numbers.map(|number| number.to_string());
        let call = call(&row.peer, &row.variant).to_owned();
        let name = [row.peer.clone(), row.version.clone(), row.variant.clone(), call];
        let [peer, version, path, call] = name;
        [peer, version, path, call, a, b, c, d, e, f, g]
    });
    plain_table("What each peer does with invalid and with valid cases", headings, 4, lines)
}

/// The place of the matrix of all cases.
fn matrix(rows: &[&Row]) -> Tag {
    tag("details")
        .class("block")
        .attr("data-hostile", "cases")
        .with(tag("summary").text(format!("All {} cases", cases(rows).len())))
        .with(needs_scripts())
}

/// All peers, our own first.
pub(super) fn peers<'r>(rows: &[&'r Row]) -> Vec<&'r str> {
    let mut peers: Vec<&str> = rows.iter().map(|row| row.peer.as_str()).collect();
    peers.sort_by_key(|peer| (*peer != results::PEER, *peer));
    peers.dedup();
    peers
}

/// All cases without duplicates, path by path.
pub(super) fn cases<'r>(rows: &[&'r Row]) -> Vec<&'r CaseOutcome> {
    let mut seen = std::collections::HashSet::new();
    rows.iter().flat_map(|row| &row.cases).filter(|case| seen.insert(case.name.as_str())).collect()
}

//! The task `hostile`: the sums of each peer, and the matrix of all cases.

use bench::{CaseOutcome, Outcome, Row, own};

use super::Placed;
use crate::html::{
    Html, Tag, body, cell, framed, head, heading, plain_table, row, row_heading, tag,
};

pub(super) fn of(rows: &[Placed<'_>]) -> Html {
    let rows: Vec<&Row> = rows.iter().map(|(_, row)| *row).collect();
    Html::from(sums(&rows)).and(matrix(&rows))
}

fn sums(rows: &[&Row]) -> Tag {
    let headings = [
        "peer",
        "path",
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
        [row.peer.clone(), row.variant.clone(), a, b, c, d, e, f, g]
    });
    plain_table("What each peer does with invalid and with valid cases", headings, 2, lines)
}

fn matrix(rows: &[&Row]) -> Tag {
    let peers = peers(rows);
    let cases = cases(rows);
    let headings = ["case", "must"].into_iter().chain(peers.iter().copied()).map(heading);
    let lines = cases.iter().map(|case| {
        let outcomes = peers.iter().map(|peer| {
            let of_peer = rows.iter().filter(|row| row.peer == *peer);
            let mut outcomes = of_peer.flat_map(|row| &row.cases);
            outcome(outcomes.find(|outcome| outcome.name == case.name))
        });
        let name = row_heading().class("case").text(&case.name);
        row().with(name).with(cell().text(case.must())).with_all(outcomes)
    });
    let table = framed(CAPTION, "matrix", Html::from(head(headings)).and(body(lines)));
    tag("details")
        .class("block")
        .with(tag("summary").text(format!("All {} cases", cases.len())))
        .with(table)
}

fn outcome(case: Option<&CaseOutcome>) -> Tag {
    let Some(case) = case else { return cell().class("absent").text("–") };
    let word = match case.outcome {
        Outcome::Accepted => "accepts",
        Outcome::Refused => "refuses",
        Outcome::Crashed => "crashes",
        Outcome::Hung => "hangs",
    };
    let cell = cell().class(if case.is_right() { "right" } else { "wrong" });
    match (case.is_right(), &case.reason) {
        (false, _) => cell.text(format!("✗ {word}")),
        (true, Some(reason)) => cell.attr("title", reason).text(word),
        (true, None) => cell.text(word),
    }
}

/// All peers, our own first.
fn peers<'r>(rows: &[&'r Row]) -> Vec<&'r str> {
    let mut peers: Vec<&str> = rows.iter().map(|row| row.peer.as_str()).collect();
    peers.sort_by_key(|peer| (*peer != own::PEER, *peer));
    peers.dedup();
    peers
}

/// All cases, each once, path by path.
fn cases<'r>(rows: &[&'r Row]) -> Vec<&'r CaseOutcome> {
    let mut seen = std::collections::HashSet::new();
    rows.iter().flat_map(|row| &row.cases).filter(|case| seen.insert(case.name.as_str())).collect()
}

const CAPTION: &str = "What each peer does with each case; ✗ marks what is wrong, – that it has no such path; “either” is a valid case \
     with an invalid record, which a strict verifier may refuse";

//! The task `hostile`: the matrix of cases and peers, its sums, and a summary.

use super::speed;
use super::style::{Grid, PLAIN, TITLE, styled};
use crate::PEER;
use crate::results::{CaseOutcome, Expect, Outcome};
use crate::{Row, Task};

/// The matrix of cases and peers, and the sums by peer and path.
pub(super) fn matrix(rows: &[&Row]) -> String {
    let (cases, valid) = (cases(rows), |case: &&CaseOutcome| case.expect != Expect::Refuse);
    let amount = speed::amount(Task::Hostile.unit(), cases.len() as u64);
    let valid = cases.iter().copied().filter(valid).count();
    let title = format!("hostile: {amount}, {valid} of them valid, each in a process of its own");
    let title = styled(TITLE, &title);
    format!("{title}\n\n{}\n\n{}\n\n{LEGEND}", matrix_table(rows, &cases), sums(rows))
}

/// All cases without duplicates, path by path.
fn cases<'r>(rows: &[&'r Row]) -> Vec<&'r CaseOutcome> {
    let mut cases: Vec<&CaseOutcome> = Vec::new();
    for row in rows {
        let is_new = |case: &&CaseOutcome| !cases.iter().any(|known| known.name == case.name);
        let new: Vec<&CaseOutcome> = row.cases.iter().filter(is_new).collect();
        cases.extend(new);
    }
    cases
}

fn matrix_table(rows: &[&Row], cases: &[&CaseOutcome]) -> String {
    let peers = peers(rows);
    let mut grid = Grid::new(["case", "must"].into_iter().chain(peers.iter().copied()));
    for case in cases {
        let outcomes = peers.iter().map(|peer| {
            let of_peer = rows.iter().filter(|row| row.peer == *peer);
            let mut outcomes = of_peer.flat_map(|row| &row.cases);
            outcomes.find(|outcome| outcome.name == case.name).map_or("–".to_owned(), cell)
        });
        let first = [case.name.clone(), case.must().to_owned()];
        grid.row(PLAIN, first.into_iter().chain(outcomes));
    }
    grid.render()
}

/// All peers, our own first.
fn peers<'r>(rows: &[&'r Row]) -> Vec<&'r str> {
    let mut peers: Vec<&str> = rows.iter().map(|row| row.peer.as_str()).collect();
    peers.sort_by_key(|peer| (*peer != PEER, *peer));
    peers.dedup();
    peers
}

fn cell(case: &CaseOutcome) -> String {
    let word = match case.outcome {
        Outcome::Accepted => "accepts",
        Outcome::Refused => "refuses",
        Outcome::Crashed => "crashes",
        Outcome::Hung => "hangs",
    };
    if case.is_right() { word.to_owned() } else { format!("**{word}**") }
}

fn sums(rows: &[&Row]) -> String {
    let outcomes = ["invalid", "refused", "accepted", "crashed", "hung", "valid", "not accepted"];
    let mut grid = Grid::new(["peer", "path"].into_iter().chain(outcomes));
    for row in rows {
        let numbers = numbers(row).map(|number| number.to_string());
        grid.row(PLAIN, [row.peer.clone(), row.variant.clone()].into_iter().chain(numbers));
    }
    grid.align_right(2..=8);
    grid.render()
}

fn numbers(row: &Row) -> [u64; 7] {
    let count = |name| row.counts.get(name).unwrap_or_default();
    let outcomes = ["refused", "accepted", "crashed", "hung"].map(count);
    let invalid = outcomes.iter().sum();
    let [refused, accepted, crashed, hung] = outcomes;
    let valid = row.units.saturating_sub(invalid);
    let not_accepted = row.valid_refused.unwrap_or_default();
    [invalid, refused, accepted, crashed, hung, valid, not_accepted]
}

/// One sentence for the peers that are always right, and one per other peer.
pub(super) fn paragraph(rows: &[&Row]) -> String {
    let (right, wrong): (Vec<&str>, Vec<&str>) = peers(rows)
        .into_iter()
        .partition(|peer| rows.iter().filter(|row| row.peer == *peer).all(|row| is_right(row)));
    let mut sentences = Vec::new();
    if !right.is_empty() {
        let names = right.join(", ");
        sentences.push(format!("{names}: right on every case."));
    }
    for peer in wrong {
        let of_peer: Vec<&&Row> = rows.iter().filter(|row| row.peer == peer).collect();
        sentences.push(format!("{peer} {}.", faults(&of_peer).join(", ")));
    }
    sentences.join(" ")
}

fn is_right(row: &Row) -> bool {
    row.cases.iter().all(CaseOutcome::is_right)
}

fn faults(rows: &[&&Row]) -> Vec<String> {
    let sum = |at: usize| rows.iter().map(|row| numbers(row)[at]).sum::<u64>();
    let [invalid, _, accepted, crashed, hung, _, not_accepted] = [0, 1, 2, 3, 4, 5, 6].map(sum);
    let faults = [
        (accepted, format!("accepts {accepted} of {invalid} invalid cases")),
        (crashed, format!("crashes on {crashed}")),
        (hung, format!("hangs on {hung}")),
        (not_accepted, format!("does not accept {not_accepted} valid ones")),
    ];
    faults.into_iter().filter(|(count, _)| *count > 0).map(|(_, fault)| fault).collect()
}

const LEGEND: &str = "\
–: the peer has no such path
either: a valid repository or event with an invalid record, which a strict verifier may refuse
the peers' reasons are in results.json
";

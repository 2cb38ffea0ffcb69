//! What does the table say, in a paragraph?

use super::{grouped, wrap};
use crate::{Parity, Results, Row};

/// Who was fastest at checked and at unchecked work, how even the run was, and what is missing.
pub(super) fn paragraph(results: &Results) -> String {
    let mut sentences = Vec::new();
    for (group, work) in [("verified", "Every hash checked"), ("unverified", "Hashes trusted")] {
        sentences.extend(winner(&results.rows, group, work));
    }
    sentences.push(parity(&results.rows));
    sentences.extend(spread(&results.rows));
    if !results.unavailable.is_empty() {
        sentences.push(format!("Not available: {}.", results.unavailable.len()));
    }
    wrap(&sentences.join(" "), 0)
}

fn winner(rows: &[Row], group: &str, work: &str) -> Option<String> {
    // Rows come in order of speed.
    let mut ranked = rows.iter().filter(|row| row.is_ranked() && row.group() == group);
    let first = ranked.next()?;
    let speed = first.median()?;
    let mut sentence = format!(
        "{work}, the fastest is {} ({}) with {} {}s/s",
        first.peer,
        first.variant,
        grouped(speed),
        first.unit
    );
    if let Some(second) = ranked.find(|row| row.peer != first.peer) {
        let times = speed / second.median()?;
        sentence += &format!(", {times:.2} times the next, {} ({})", second.peer, second.variant);
    }
    Some(sentence + ".")
}

fn parity(rows: &[Row]) -> String {
    let equal = rows.iter().filter(|row| row.parity == Parity::Ok).count();
    let unranked = rows.iter().filter(|row| !row.is_ranked()).count();
    let unranked = if unranked > 0 { format!("; {unranked} not ranked") } else { String::new() };
    format!("{equal} of {} rows proved equal work{unranked}.", rows.len())
}

/// The row whose fastest pass is furthest from its slowest.
fn spread(rows: &[Row]) -> Option<String> {
    let spread = |row: &Row| row.per_s.map_or(1.0, |rate| rate.max / rate.min);
    let widest = rows.iter().max_by(|a, b| spread(a).total_cmp(&spread(b)))?;
    let percent = 100.0 * (spread(widest) - 1.0);
    (percent >= 1.0).then(|| {
        format!(
            "The least even row is {} ({}): its fastest pass is {percent:.0} % faster than its slowest.",
            widest.peer, widest.variant
        )
    })
}

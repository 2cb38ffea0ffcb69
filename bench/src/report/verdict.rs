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
    sentences.extend(unrest(&results.rows));
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

/// Says so if the machine had other things to do.
fn unrest(rows: &[Row]) -> Option<String> {
    let rates: Vec<_> = rows.iter().filter_map(|row| row.per_s).collect();
    let uneven = rates.iter().filter(|rate| rate.max > UNEVEN * rate.min).count();
    (2 * uneven > rates.len()).then(|| {
        "Most rows are uneven: the machine was busy, which costs long passes more than short \
         ones. Measure again when it is quiet."
            .to_owned()
    })
}

/// A row whose fastest pass is this many times its slowest was disturbed.
const UNEVEN: f64 = 1.4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rate;
    use crate::report::tests::results;

    #[test]
    fn a_run_on_a_busy_machine_says_so() {
        let mut results = results();
        assert!(!paragraph(&results).contains("busy"));
        for row in &mut results.rows {
            row.per_s = Some(Rate { min: 100.0, median: 180.0, max: 200.0 });
        }
        assert!(paragraph(&results).replace('\n', " ").contains("the machine was busy"));
    }
}

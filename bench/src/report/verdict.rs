//! What does the table say, in a paragraph?

use super::{hostile, speed, tasks, wrap};
use crate::{Parity, Results, Row, Task};

/// A paragraph for each task, and who is missing.
pub(super) fn paragraphs(results: &Results) -> String {
    let tasks = tasks(&results.rows);
    let mut paragraphs: Vec<String> = tasks
        .iter()
        .map(|task| {
            let rows: Vec<&Row> = results.rows.iter().filter(|row| row.task == *task).collect();
            let name = if tasks.len() > 1 { format!("{task}: ") } else { String::new() };
            name + &paragraph(task, &rows)
        })
        .collect();
    if !results.unavailable.is_empty() {
        let missing = format!("Not available: {}.", results.unavailable.len());
        match &mut paragraphs[..] {
            [only] => *only += &format!(" {missing}"),
            _ => paragraphs.push(missing),
        }
    }
    paragraphs.iter().map(|paragraph| wrap(paragraph, 0) + "\n").collect::<Vec<_>>().join("\n")
}

/// Who was fastest at which work, and how even the run was.
pub(super) fn paragraph(task: &str, rows: &[&Row]) -> String {
    if Task::from_name(task) == Some(Task::Hostile) {
        return hostile::paragraph(rows);
    }
    let mut sentences: Vec<String> =
        WORK.iter().filter(|work| work.task == task).filter_map(|work| work.winner(rows)).collect();
    sentences.push(parity(rows));
    sentences.extend(spread(rows));
    sentences.extend(unrest(rows));
    sentences.join(" ")
}

/// Something to be fastest at.
struct Work {
    task: &'static str,
    group: &'static str,
    /// Whether batches are left out.
    is_alone: bool,
    name: &'static str,
}

impl Work {
    fn winner(&self, rows: &[&Row]) -> Option<String> {
        // Rows come in order of speed.
        let mut ranked = rows.iter().filter(|row| {
            let is_batch = row.variant.contains("/batch");
            row.is_ranked() && row.group() == self.group && !(self.is_alone && is_batch)
        });
        let first = ranked.next()?;
        let speed = first.median()?;
        let mut sentence = format!(
            "{}, the fastest is {} ({}) with {}",
            self.name,
            first.peer,
            first.variant,
            speed::sentence(&first.unit, speed)
        );
        if let Some(second) = ranked.find(|row| row.peer != first.peer) {
            let times = speed / second.median()?;
            sentence +=
                &format!(", {times:.2} times the next, {} ({})", second.peer, second.variant);
        }
        Some(sentence + ".")
    }
}

const fn work(task: &'static str, group: &'static str, is_alone: bool, name: &'static str) -> Work {
    Work { task, group, is_alone, name }
}

/// What the paragraphs speak of.
const WORK: [Work; 16] = [
    work("decode", "verified", false, "Every hash checked"),
    work("decode", "unverified", false, "Hashes trusted"),
    work("sigs", "full", false, "From the commits' bytes"),
    work("sigs", "full", true, "One commit at a time"),
    work("sigs", "preparsed", false, "With messages and keys at hand"),
    work("sigs", "full@mixed", false, "With both curves"),
    work("schnorr", "verify", false, "In any number at a time"),
    work("schnorr", "verify", true, "One event at a time"),
    work("mst", "insert-root/ascending", false, "Inserting in the order of the keys"),
    work("mst", "insert-root/shuffled", false, "Inserting in any order"),
    work("mst", "bulk", false, "Building from all records at once"),
    work("mst", "lookup", false, "Looking up"),
    work("repo", "total", false, "Proving a whole repository"),
    work("repo", "total/rebuild", false, "With its tree built anew"),
    work("commit", "full", false, "Judging commits in any number at a time"),
    work("commit", "full", true, "Judging one commit at a time"),
];

fn parity(rows: &[&Row]) -> String {
    let equal = rows.iter().filter(|row| row.parity == Parity::Ok).count();
    let unranked = rows.iter().filter(|row| !row.is_ranked()).count();
    let unranked = if unranked > 0 { format!("; {unranked} not ranked") } else { String::new() };
    format!("{equal} of {} rows proved equal work{unranked}.", rows.len())
}

/// The row whose fastest pass is furthest from its slowest.
fn spread(rows: &[&Row]) -> Option<String> {
    let spread = |row: &Row| row.per_s.map_or(1.0, |rate| rate.max / rate.min);
    let widest = rows.iter().copied().max_by(|a, b| spread(a).total_cmp(&spread(b)))?;
    let percent = 100.0 * (spread(widest) - 1.0);
    (percent >= 1.0).then(|| {
        format!(
            "The least even row is {} ({}): its fastest pass is {percent:.0} % faster than its slowest.",
            widest.peer, widest.variant
        )
    })
}

/// Says so if the machine had other things to do.
fn unrest(rows: &[&Row]) -> Option<String> {
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
        assert!(!paragraphs(&results).contains("busy"));
        for row in &mut results.rows {
            row.per_s = Some(Rate { min: 100.0, median: 180.0, max: 200.0 });
        }
        assert!(paragraphs(&results).replace('\n', " ").contains("the machine was busy"));
    }
}

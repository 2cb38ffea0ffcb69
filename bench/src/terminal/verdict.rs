//! What does a table say, in a paragraph? Who was fastest at which work, how many times as fast as whom,
//! what was checked on the way, and how even the run was.

use super::{Baseline, baseline, hostile, nostr, sizes, speed, table, wrap};
use crate::{Parity, Row, Task};

/// The paragraph under the table of a task, in lines.
pub(super) fn wrapped(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    let text = paragraph(task, rows, chosen).replace(" – ", TIED_DASH);
    wrap(&text, 0).replace(TIED_DASH, " – ")
}

/// The same in one line.
pub(super) fn paragraph(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    if Task::from_name(task) == Some(Task::Hostile) {
        return hostile::paragraph(rows);
    }
    if Task::from_name(task) == Some(Task::NostrSize) {
        return sizes::paragraph(rows);
    }
    let verdict = Verdict { task, rows, chosen };
    let mut sentences =
        if nostr::is_task(task) { nostr::sentences(rows) } else { verdict.winners() };
    sentences.push(parity(rows));
    sentences.extend(spread(rows));
    sentences.extend(unrest(rows));
    sentences.join(" ")
}

/// The rows of a task, and what they are held against.
struct Verdict<'v> {
    task: &'v str,
    rows: &'v [&'v Row],
    chosen: Option<&'v Baseline>,
}

impl Verdict<'_> {
    /// A sentence for each kind of work, and for the first what its fastest checks.
    fn winners(&self) -> Vec<String> {
        let known: Vec<&Work> = WORK.iter().filter(|work| work.task == self.task).collect();
        let mut sentences: Vec<String> = if known.is_empty() {
            let mut groups: Vec<String> = self.rows.iter().map(|row| row.group()).collect();
            groups.dedup();
            let winner = |group: &String| self.winner(group, false, &format!("Of {group}"));
            groups.iter().filter_map(winner).collect()
        } else {
            let winner = |work: &&Work| self.winner(work.group, work.is_alone, work.name);
            known.iter().filter_map(winner).collect()
        };
        if let Some(checked) = self.rows.first().and_then(|row| self.checked(&row.group())) {
            sentences.insert(1.min(sentences.len()), checked);
        }
        sentences
    }

    /// The rows of a kind that may be ranked, the fastest first.
    fn ranked<'r>(&'r self, group: &'r str) -> impl Iterator<Item = &'r Row> {
        // Rows come in order of speed.
        self.rows.iter().copied().filter(move |row| row.is_ranked() && row.group() == group)
    }

    fn winner(&self, group: &str, is_alone: bool, name: &str) -> Option<String> {
        let is_batch = |row: &&Row| row.variant.contains("/batch");
        let mut ranked = self.ranked(group).filter(|row| !(is_alone && is_batch(row)));
        let first = ranked.next()?;
        let rate = first.per_s?;
        let mut times = Vec::new();
        let next = ranked.find(|row| row.peer != first.peer);
        if let Some(next) = next {
            times.push(format!("{:.2} times the next, {}", rate.median / next.median()?, of(next)));
        }
        let against = baseline::of_group(first, self.rows, self.chosen);
        let is_new =
            |row: &&Row| row.peer != first.peer && Some(&row.peer) != next.map(|row| &row.peer);
        if let Some(row) = against.filter(is_new) {
            times.push(format!("{:.2} times {}", rate.median / row.median()?, of(row)));
        }
        let times =
            if times.is_empty() { String::new() } else { format!(", {}", times.join(" and ")) };
        let (speed, range) =
            (speed::sentence(&first.unit, rate.median), speed::range(&first.unit, rate));
        Some(format!("{name}, the fastest is {} with {speed} ({range}){times}.", of(first)))
    }

    /// What the fastest of a kind checks, beside the fastest of another peer.
    fn checked(&self, group: &str) -> Option<String> {
        let mut ranked = self.ranked(group);
        let first = ranked.next()?;
        let second = ranked.find(|row| row.peer != first.peer);
        let told =
            |row: &Row| Some(format!("{} {}", row.peer, checks(&table::checks(self.task, row)?)));
        let told: Option<Vec<String>> = std::iter::once(first).chain(second).map(told).collect();
        Some(format!("{}.", told?.join(", ")))
    }
}

fn of(row: &Row) -> String {
    format!("{} ({})", row.peer, row.variant)
}

/// What a row makes of the checks of its task.
fn checks(checks: &[(&str, bool)]) -> String {
    let left_out: Vec<&str> =
        checks.iter().filter(|(_, is_made)| !is_made).map(|(check, _)| *check).collect();
    match &left_out[..] {
        [] => "makes every check".to_owned(),
        [_] | [_, _] => format!("leaves out {}", left_out.join(" and ")),
        _ => format!("makes {} of {} checks", checks.len() - left_out.len(), checks.len()),
    }
}

/// Something to be fastest at.
struct Work {
    task: &'static str,
    group: &'static str,
    /// Whether batches are left out.
    is_alone: bool,
    name: &'static str,
}

const fn work(task: &'static str, group: &'static str, is_alone: bool, name: &'static str) -> Work {
    Work { task, group, is_alone, name }
}

/// What the paragraphs speak of; of other tasks, each kind of row.
const WORK: &[Work] = &[
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

/// How many rows did the same work, and which counts say so.
fn parity(rows: &[&Row]) -> String {
    let equal: Vec<&&Row> = rows.iter().filter(|row| row.parity == Parity::Ok).collect();
    let unranked = rows.iter().filter(|row| !row.is_ranked()).count();
    let unranked = if unranked > 0 { format!("; {unranked} not ranked") } else { String::new() };
    let mut counts: Vec<&str> = equal.iter().flat_map(|row| row.counts.names()).collect();
    counts.sort_unstable();
    counts.dedup();
    let by = match &counts[..] {
        [] => String::new(),
        counts => format!(", by their counts of {}", counts.join(", ")),
    };
    format!("{} of {} rows proved equal work{by}{unranked}.", equal.len(), rows.len())
}

/// The row whose fastest pass is furthest from its slowest.
fn spread(rows: &[&Row]) -> Option<String> {
    let spread = |row: &Row| row.per_s.map_or(1.0, |rate| rate.max / rate.min);
    let widest = rows.iter().copied().max_by(|a, b| spread(a).total_cmp(&spread(b)))?;
    let percent = 100.0 * (spread(widest) - 1.0);
    (percent >= 1.0).then(|| {
        let row = of(widest);
        format!("The least even row is {row}: its fastest pass is {percent:.0} % faster than its slowest.")
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

/// Holds the ends of a range together on a line.
const TIED_DASH: &str = "\u{a0}–\u{a0}";

/// A row whose fastest pass is this many times its slowest was disturbed.
const UNEVEN: f64 = 1.4;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rate;
    use crate::terminal::tests::results;

    fn told(change: impl Fn(&mut Row)) -> String {
        let mut results = results();
        results.rows.iter_mut().for_each(change);
        let rows: Vec<&Row> = results.rows.iter().collect();
        paragraph(&results.rows[0].task, &rows, None)
    }

    #[test]
    fn a_run_on_a_busy_machine_says_so() {
        assert!(!told(|_| ()).contains("busy"));
        let uneven = Rate { min: 100.0, median: 180.0, max: 200.0 };
        assert!(told(|row| row.per_s = Some(uneven)).contains("the machine was busy"));
    }

    #[test]
    fn a_task_that_nobody_wrote_about_has_its_ratios_too() {
        let told = told(|row| row.task = "weave".to_owned());
        assert!(told.starts_with("Of verified, the fastest is wireproof"), "{told}");
        assert!(told.contains("30.00 times the next, go-indigo (verified)"), "{told}");
    }

    #[test]
    fn checks_are_told_and_those_that_few_leave_out_are_named() {
        let made = [("a", true), ("b", true), ("c", true)];
        assert_eq!(checks(&made), "makes every check");
        assert_eq!(checks(&[made[0], ("b", false), ("c", false)]), "leaves out b and c");
        assert_eq!(checks(&made.map(|(check, _)| (check, false))), "makes 0 of 3 checks");
        assert!(told(|_| ()).contains("wireproof makes 3 of 11 checks, go-indigo makes 2 of 11"));
    }

    #[test]
    fn counts_that_prove_equal_work_are_named() {
        assert!(told(|_| ()).contains("6 of 7 rows proved equal work, by their counts of frames;"));
    }
}

//! The summary under a table: the fastest row of every kind of work, its ratio and checks, and how even the run was.

use protocol::checks;

use super::baseline::{self, Baseline};
use super::style::wrap;
use super::table::{groups, is_nostr, nanoseconds};
use super::{hostile, sizes, speed};
use crate::{PEER, is_ours};
use crate::{Parity, Row, Task};

/// The summary of a task in lines.
pub(super) fn wrapped(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    let mut text = paragraph(task, rows, chosen);
    for (plain, tied) in TIED {
        text = text.replace(plain, tied);
    }
    wrap(&text, 0).replace('\u{a0}', " ")
}

/// The same in one line.
pub(super) fn paragraph(task: &str, rows: &[&Row], chosen: Option<&Baseline>) -> String {
    if Task::from_name(task) == Some(Task::Hostile) {
        return hostile::paragraph(rows);
    }
    if Task::from_name(task) == Some(Task::NostrSize) {
        return sizes::paragraph(rows);
    }
    let summary = Summary { task, rows, chosen };
    let mut sentences = if is_nostr(task) { nostr_winners(rows) } else { summary.winners() };
    sentences.push(parity(rows));
    sentences.extend(spread(rows));
    sentences.extend(busy_machine(rows));
    sentences.join(" ")
}

/// The rows of a task and their baseline.
struct Summary<'v> {
    task: &'v str,
    rows: &'v [&'v Row],
    chosen: Option<&'v Baseline>,
}

impl Summary<'_> {
    /// A sentence per kind of work, and for the first kind the checks of its fastest rows.
    fn winners(&self) -> Vec<String> {
        let known: Vec<&Work> = WORK.iter().filter(|work| work.task == self.task).collect();
        let mut sentences: Vec<String> = if known.is_empty() {
            let mut groups: Vec<String> = self.rows.iter().map(|row| row.group()).collect();
            groups.dedup();
            let winner = |group: &String| self.winner(group, false, &format!("Of {group}"));
            groups.iter().filter_map(winner).collect()
        } else {
            let winner = |work: &&Work| self.winner(work.group, work.is_plain_alone, work.name);
            known.iter().filter_map(winner).collect()
        };
        if let Some(checked) = self.rows.first().and_then(|row| self.checked(&row.group())) {
            sentences.insert(1.min(sentences.len()), checked);
        }
        sentences
    }

    /// The ranked rows of a group that represent their peers, the fastest first.
    fn ranked<'r>(&'r self, group: &'r str) -> impl Iterator<Item = &'r Row> {
        // Rows are sorted by speed.
        let is_ranked = |row: &Row| row.is_ranked() && !row.is_forced();
        self.rows.iter().copied().filter(move |row| is_ranked(row) && row.group() == group)
    }

    fn winner(&self, group: &str, is_plain_alone: bool, name: &str) -> Option<String> {
        let is_plain = |row: &Row| !row.is_batch() && !row.is_prepared();
        let mut ranked = self.ranked(group).filter(|row| is_plain(row) || !is_plain_alone);
        let first = ranked.next()?;
        let rate = first.per_s?;
        let mut times = Vec::new();
        let next = ranked.find(|row| is_other(row, first));
        if let Some(next) = next {
            times.push(format!("{:.2} × {}, the next", rate.median / next.median()?, of(next)));
        }
        let against = baseline::of_group(first, self.rows, self.chosen);
        let is_new =
            |row: &&Row| row.peer != first.peer && Some(&row.peer) != next.map(|row| &row.peer);
        if let Some(row) = against.filter(is_new) {
            times.push(format!("{:.2} × {}", rate.median / row.median()?, of(row)));
        }
        let times =
            if times.is_empty() { String::new() } else { format!(", {}", times.join(", and ")) };
        let (speed, range) =
            (speed::sentence(&first.unit, rate.median), speed::range(&first.unit, rate));
        Some(format!("{name}, the fastest is {} with {speed} ({range}){times}.", of(first)))
    }

    /// The checks of the fastest row of a group and of the fastest row of another peer.
    fn checked(&self, group: &str) -> Option<String> {
        let mut ranked = self.ranked(group);
        let first = ranked.next()?;
        let second = ranked.find(|row| is_other(row, first));
        let known = checks::of_task(self.task);
        if known.is_empty() {
            return None;
        }
        let is_made = |row: &Row, check: &str| row.checks.iter().any(|made| made == check);
        let sentence = |row: &Row| {
            let checks: Vec<_> =
                known.iter().map(|(_, check)| (*check, is_made(row, check))).collect();
            format!("{} {}", row.peer, made_checks(&checks))
        };
        let sentences: Vec<String> = std::iter::once(first).chain(second).map(sentence).collect();
        Some(format!("{}.", sentences.join(", ")))
    }
}

/// Whether a row is of another implementation than `first`: our packages for other languages are none.
fn is_other(row: &Row, first: &Row) -> bool {
    row.peer != first.peer && !(is_ours(&row.peer) && is_ours(&first.peer))
}

fn of(row: &Row) -> String {
    format!("{} ({})", row.peer, row.variant)
}

/// The checks that a row makes or leaves out.
fn made_checks(checks: &[(&str, bool)]) -> String {
    let left_out: Vec<&str> =
        checks.iter().filter(|(_, is_made)| !is_made).map(|(check, _)| *check).collect();
    match &left_out[..] {
        [] => "makes every check".to_owned(),
        [_] | [_, _] => format!("leaves out {}", left_out.join(" and ")),
        _ => format!("makes {} of {} checks", checks.len() - left_out.len(), checks.len()),
    }
}

/// A kind of work with a sentence in the summary.
struct Work {
    task: &'static str,
    group: &'static str,
    is_plain_alone: bool,
    name: &'static str,
}

const fn work(
    task: &'static str,
    group: &'static str,
    is_plain_alone: bool,
    name: &'static str,
) -> Work {
    Work { task, group, is_plain_alone, name }
}

/// The kinds of work in summaries; other tasks have a sentence per group.
const WORK: &[Work] = &[
    work("decode", "verified", false, "Every hash checked, batches included"),
    work("decode", "verified", true, "One frame at a time"),
    work("decode", "unverified", false, "Hashes trusted, batches included"),
    work("decode", "unverified", true, "Hashes trusted, one frame at a time"),
    work("sigs", "full", false, "From the commits' bytes, batches included"),
    work("sigs", "full", true, "One commit at a time"),
    work("sigs", "preparsed", false, "With messages and parsed keys given"),
    work("sigs", "full@mixed", false, "With both curves"),
    work("sigs", "full@many-accounts", false, "Of 100,000 accounts"),
    work("sigs", "full@many-accounts", true, "Of 100,000 accounts, one commit at a time"),
    work("schnorr", "verify", false, "Batches included"),
    work("schnorr", "verify", true, "One event at a time"),
    work("mst", "insert-root/ascending", false, "Inserting in the order of the keys"),
    work("mst", "insert-root/shuffled", false, "Inserting in any order"),
    work("mst", "bulk", false, "Building from all records at once"),
    work("mst", "lookup", false, "Looking up"),
    work("mst", "mixed", false, "Inserting, updating, deleting and looking up in turn"),
    work("repo", "total", false, "Verifying a whole repository"),
    work("repo", "total/rebuild", false, "With its tree rebuilt"),
    work("commit", "full", false, "Verifying commits, batches included"),
    work("commit", "full", true, "Verifying one commit at a time"),
    work("commit", "full@many-accounts", false, "Of 100,000 accounts, batches included"),
    work("commit", "full@many-accounts", true, "Of 100,000 accounts, one commit at a time"),
];

/// The fastest row of all, and the ratios of our own codecs to the fastest others of the same format.
fn nostr_winners(rows: &[&Row]) -> Vec<String> {
    let ranked = || rows.iter().filter(|row| row.is_ranked());
    let Some(first) =
        ranked().max_by(|a, b| a.median().unwrap_or(0.0).total_cmp(&b.median().unwrap_or(0.0)))
    else {
        return Vec::new();
    };
    let time = first.median().map_or_else(String::new, nanoseconds);
    let mut sentences = vec![format!(
        "Of all rows, the fastest is {} ({}) with {time} ns per event.",
        first.peer, first.variant
    )];
    let ratios: Vec<String> = groups(rows).filter_map(ratio_in_group).collect();
    if !ratios.is_empty() {
        let ratios = ratios.join(", ");
        sentences.push(format!(
            "{PEER}, each format against the fastest other implementation of it: {ratios}."
        ));
        sentences.extend(ratios.contains("/batch ").then(|| NEEDS_LANES.to_owned()));
    }
    sentences
}

/// The ratio of our own fastest row of a group to the fastest row of other peers.
fn ratio_in_group(group: &[&Row]) -> Option<String> {
    let represents = |row: &&&Row| row.is_ranked() && !row.is_forced();
    let ranked = || group.iter().filter(represents);
    let (own, other) =
        (ranked().find(|row| row.peer == PEER)?, ranked().find(|row| !is_ours(&row.peer))?);
    let times = own.median()? / other.median()?;
    Some(format!("{} {times:.2} × {}", own.variant, other.peer))
}

/// The number of rows with equal work, and the counts that prove it.
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

/// The row with the largest difference between its fastest and slowest pass.
fn spread(rows: &[&Row]) -> Option<String> {
    let spread = |row: &Row| row.per_s.map_or(1.0, |rate| rate.max / rate.min);
    let widest = rows.iter().copied().max_by(|a, b| spread(a).total_cmp(&spread(b)))?;
    let percent = 100.0 * (spread(widest) - 1.0);
    (percent >= 1.0).then(|| {
        let row = of(widest);
        format!("The least even row is {row}: its fastest pass is {percent:.0} % faster than its slowest.")
    })
}

/// A warning if most rows are uneven.
fn busy_machine(rows: &[&Row]) -> Option<String> {
    crate::is_uneven(rows).then(|| {
        "Most rows are uneven: the machine was busy, which costs long passes more than short \
         ones. Measure again when it is quiet."
            .to_owned()
    })
}

/// The condition of the ratios of rows that verify many events at a time.
const NEEDS_LANES: &str = "Ratios of batches are of a processor with AVX-512 IFMA; with AVX2 and FMA alone they are \
lower, and without either events of a batch are verified one by one.";

/// Keeps a range, and a ratio with its name, on one line.
const TIED: [(&str, &str); 2] = [(" – ", "\u{a0}–\u{a0}"), (" × ", "\u{a0}×\u{a0}")];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::terminal::tests::results;

    fn summary_after(change: impl Fn(&mut Row)) -> String {
        let mut results = results();
        results.rows.iter_mut().for_each(change);
        let rows: Vec<&Row> = results.rows.iter().collect();
        paragraph(&results.rows[0].task, &rows, None)
    }

    #[test]
    fn a_busy_machine_is_reported() {
        assert!(!summary_after(|_| ()).contains("busy"));
        let text = summary_after(|row| row.passes_ns = vec![100, 110, 150, 190, 200]);
        assert!(text.contains("the machine was busy"), "{text}");
    }

    #[test]
    fn a_forced_back_end_is_in_no_sentence() {
        let force = |row: &mut Row| {
            if row.peer == PEER {
                row.variant = format!("{}/batch/forced-fast", row.group());
            }
        };
        let text = summary_after(force);
        assert!(
            text.contains("Every hash checked, batches included, the fastest is go-indigo"),
            "{text}"
        );
    }

    #[test]
    fn ratios_of_batches_name_the_instructions_that_they_need() {
        let of_format = |batch: &'static str| {
            summary_after(move |row| {
                row.task = "nostr-validated".to_owned();
                row.variant =
                    if row.peer == PEER { format!("json{batch}") } else { "json".to_owned() };
            })
        };
        assert!(of_format("/batch").contains("with AVX-512 IFMA"));
        assert!(!of_format("").contains("AVX"));
    }

    #[test]
    fn the_ratio_to_a_peer_is_to_its_faster_row() {
        let mut results = results();
        let slower = results.rows.iter().find(|row| row.peer == "go-indigo").expect("a row");
        let mut faster = Row { variant: "verified/typed-nodes".to_owned(), ..slower.clone() };
        faster.per_s = faster.per_s.map(|rate| crate::Rate { median: 2.0 * rate.median, ..rate });
        results.rows.push(faster);
        crate::terminal::sort(&mut results.rows);
        let rows: Vec<&Row> = results.rows.iter().collect();
        let against = baseline::of_group(rows[0], &rows, None).expect("a baseline");
        assert_eq!(against.variant, "verified/typed-nodes");
    }

    #[test]
    fn an_unknown_task_has_ratios_too() {
        let text = summary_after(|row| row.task = "weave".to_owned());
        assert!(text.starts_with("Of verified, the fastest is wireproof"), "{text}");
        assert!(text.contains("30.00 × go-indigo (verified), the next"), "{text}");
    }

    #[test]
    fn checks_are_summarised_and_one_or_two_missing_ones_are_named() {
        let made = [("a", true), ("b", true), ("c", true)];
        assert_eq!(made_checks(&made), "makes every check");
        assert_eq!(made_checks(&[made[0], ("b", false), ("c", false)]), "leaves out b and c");
        assert_eq!(made_checks(&made.map(|(check, _)| (check, false))), "makes 0 of 3 checks");
        assert!(
            summary_after(|_| ())
                .contains("wireproof makes 3 of 11 checks, go-indigo makes 2 of 11")
        );
    }

    #[test]
    fn counts_that_prove_equal_work_are_named() {
        assert!(
            summary_after(|_| ())
                .contains("6 of 7 rows proved equal work, by their counts of frames;")
        );
    }
}

//! How do results read? Their order, what they are held against, the table and the verdict.

mod baseline;
mod hostile;
mod nostr;
mod paint;
mod sizes;
pub mod speed;
mod stages;
mod table;
mod verdict;

use crate::{Results, Row, Task};

pub use baseline::Baseline;

/// The report as plain text: of each task a table, its legend, and a paragraph that says what it comes to.
///
/// `baseline` replaces the usual rows that ratios are held against.
pub fn text(results: &Results, baseline: Option<&Baseline>) -> String {
    anstream::adapter::strip_str(&styled(results, baseline)).to_string()
}

/// The same for a terminal, with the escape sequences of colours and weights.
pub fn styled(results: &Results, baseline: Option<&Baseline>) -> String {
    let mut text = String::new();
    for task in tasks(&results.rows) {
        let rows: Vec<&Row> = results.rows.iter().filter(|row| row.task == task).collect();
        text += &match Task::from_name(task) {
            Some(Task::Hostile) => hostile::matrix(&rows),
            Some(Task::NostrSize) => sizes::tables(&rows),
            _ => table::of_task(task, &rows, baseline),
        };
        text += &format!("\n{}\n\n", verdict::wrapped(task, &rows, baseline));
    }
    text += &table::unavailable(&results.unavailable);
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// What the rows of a task come to, in a paragraph.
pub fn verdict(task: &str, rows: &[&Row]) -> String {
    verdict::paragraph(task, rows, None)
}

/// The row that `row` is held against, among the `rows` of its task in the order of the report.
///
/// `chosen` replaces the usual one.
pub fn baseline_row<'r>(row: &Row, rows: &[&'r Row], chosen: Option<&Baseline>) -> Option<&'r Row> {
    baseline::of_group(row, rows, chosen)
}

/// The checks of the runner protocol that say something of a task, each with its letter in the table.
pub fn checks_of(task: &str) -> Vec<(char, &'static str)> {
    table::checks_of(task)
}

/// Puts rows in the order of the report: by task and kind of variant, what did the same work before
/// what did not, the fastest first.
pub fn sort(rows: &mut [Row]) {
    rows.sort_by(|a, b| {
        let place =
            |row: &Row| (task_place(&row.task), group_place(&row.group()), !row.is_ranked());
        let speed = |row: &Row| row.median().unwrap_or(0.0);
        let name = |row: &Row| (row.peer.clone(), row.variant.clone());
        place(a)
            .cmp(&place(b))
            .then(speed(b).total_cmp(&speed(a)))
            .then_with(|| name(a).cmp(&name(b)))
    });
}

fn task_place(task: &str) -> (usize, String) {
    let known = Task::ALL.map(Task::name);
    place(task, &known)
}

/// Checked work first, then unchecked, then what only some do. Of signatures, the most work first, of
/// trees making them before asking them; the second corpus after the first.
fn group_place(group: &str) -> (bool, usize, String) {
    let known = [
        "verified",
        "unverified",
        "validate",
        "full",
        "crypto",
        "preparsed",
        "verify",
        "insert-root/ascending",
        "insert-root/ascending/builder",
        "insert-root/shuffled",
        "bulk",
        "lookup",
        "lookup/batch",
        "lookup/snapshot",
        "total",
        "total/load-car",
        "total/rebuild",
        "repo",
        "frames",
    ];
    let (way, corpus) = group.split_once('@').unwrap_or((group, ""));
    let (known, name) = place(way, &known);
    (!corpus.is_empty(), known, name + corpus)
}

/// Known names in their order, then the others in that of the alphabet.
fn place(name: &str, known: &[&str]) -> (usize, String) {
    let at = known.iter().position(|known| *known == name).unwrap_or(known.len());
    (at, name.to_owned())
}

/// The tasks that have rows, in the order of the rows.
fn tasks(rows: &[Row]) -> Vec<&str> {
    let mut tasks: Vec<&str> = rows.iter().map(|row| row.task.as_str()).collect();
    tasks.dedup();
    tasks
}

/// Digits in groups of three.
pub fn thousands(number: f64) -> String {
    let digits = format!("{number:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Breaks lines at spaces; every line but the first begins with `indent` spaces.
fn wrap(text: &str, indent: usize) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last_mut().expect("there is a line from the start");
        if line.is_empty() {
            line.push_str(word);
        } else if line.chars().count() + 1 + word.chars().count() <= WIDTH {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(format!("{:indent$}{word}", ""));
        }
    }
    lines.join("\n")
}

/// Columns of running text.
const WIDTH: usize = 100;

#[cfg(test)]
mod tests;

//! Results as text for a terminal: per task a table, its legend and a summary.

mod baseline;
mod hostile;
mod order;
pub mod ratio;
mod sizes;
pub mod speed;
mod style;
mod summary;
mod table;

use protocol::checks::{self, Check};

use crate::{Results, Row, Task, Unavailable};

pub use baseline::Baseline;
pub use order::sort;
pub use speed::thousands;

/// The report as plain text.
///
/// `baseline` replaces the default rows that ratios refer to.
pub fn text(results: &Results, baseline: Option<&Baseline>) -> String {
    plain(&styled(results, baseline))
}

/// A text of this module without its escape sequences.
pub fn plain(styled: &str) -> String {
    style::plain(styled)
}

/// The same with escape sequences for colours and weights.
pub fn styled(results: &Results, baseline: Option<&Baseline>) -> String {
    let mut text = String::new();
    for rows in results.rows.chunk_by(|a, b| a.task == b.task) {
        text += &(of_task(rows, baseline) + "\n");
    }
    text += &unavailable("not available", &results.unavailable);
    text.truncate(text.trim_end().len());
    text + "\n"
}

/// Table, legend and summary of the sorted `rows` of one task, with escape sequences; empty without rows.
pub fn of_task(rows: &[Row], baseline: Option<&Baseline>) -> String {
    let Some(Row { task, .. }) = rows.first() else { return String::new() };
    let rows: Vec<&Row> = rows.iter().collect();
    let tables = match Task::from_name(task) {
        Some(Task::Hostile) => hostile::matrix(&rows),
        Some(Task::NostrSize) => sizes::tables(&rows),
        _ => table::of_task(task, &rows, baseline),
    };
    format!("{tables}\n{}\n", summary::wrapped(task, &rows, baseline))
}

/// Peers without rows under a title, with the reasons; empty without peers.
pub fn unavailable(title: &str, peers: &[Unavailable]) -> String {
    table::unavailable(title, peers)
}

/// The summary of a task's rows, in one line.
pub fn summary(task: &str, rows: &[&Row]) -> String {
    summary::paragraph(task, rows, None)
}

/// The row that the ratio of `row` refers to, among the sorted `rows` of its task.
///
/// `chosen` replaces the default.
pub fn baseline_row<'r>(row: &Row, rows: &[&'r Row], chosen: Option<&Baseline>) -> Option<&'r Row> {
    baseline::of_group(row, rows, chosen)
}

/// The checks that distinguish the rows of a task, with their letters in the tables.
pub fn checks_of(task: &str) -> Vec<Check> {
    checks::of_task(task)
}

#[cfg(test)]
mod tests;

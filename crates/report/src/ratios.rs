//! The ratios of rows to their baselines, with their spreads.

use std::collections::HashMap;

use results::terminal::{self, Baseline};
use results::{Results, Row};

/// A ratio of two medians of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The quotient of the medians.
    pub median: f64,
    /// The slowest pass of the row divided by the fastest of the baseline.
    pub least: f64,
    /// The fastest pass of the row divided by the slowest of the baseline.
    pub greatest: f64,
}

impl Ratio {
    fn of(row: &Row, against: &Row) -> Option<Self> {
        let (row, against) = (row.per_s?, against.per_s?);
        Some(Self {
            median: row.median / against.median,
            least: row.min / against.max,
            greatest: row.max / against.min,
        })
    }

    /// Whether the spreads of the two overlap.
    pub fn overlaps(self, other: Self) -> bool {
        self.least <= other.greatest && other.least <= self.greatest
    }
}

/// The identity of a row in any run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Name<'r> {
    pub(crate) task: &'r str,
    pub(crate) peer: &'r str,
    pub(crate) variant: &'r str,
}

impl<'r> Name<'r> {
    pub(crate) fn of(row: &'r Row) -> Self {
        Self { task: &row.task, peer: &row.peer, variant: &row.variant }
    }
}

/// The ratios of a run.
#[derive(Debug)]
pub(crate) struct Ratios<'r> {
    of_rows: HashMap<Name<'r>, (Ratio, &'r Row)>,
}

impl<'r> Ratios<'r> {
    /// The ratios of the ranked rows. `results` must be in the order of the report.
    pub(crate) fn of(results: &'r Results, baseline: Option<&Baseline>) -> Self {
        let mut of_rows = HashMap::new();
        for rows in results.rows.chunk_by(|a, b| a.task == b.task) {
            let rows: Vec<&Row> = rows.iter().collect();
            for group in rows.chunk_by(|a, b| a.group() == b.group()) {
                let Some(against) = terminal::baseline_row(group[0], &rows, baseline) else {
                    continue;
                };
                for row in group.iter().filter(|row| row.is_ranked()) {
                    let ratio = Ratio::of(row, against);
                    of_rows.extend(ratio.map(|ratio| (Name::of(row), (ratio, against))));
                }
            }
        }
        Self { of_rows }
    }

    /// The ratio of the row with this name, and its baseline.
    pub(crate) fn get(&self, name: Name<'_>) -> Option<(Ratio, &'r Row)> {
        self.of_rows.get(&name).copied()
    }
}

//! How many times as fast as the row it is held against is each row, and how sure is that?

use std::collections::HashMap;

use bench::terminal::{self, Baseline};
use bench::{Results, Row};

/// A ratio of two medians of one run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// The one median through the other.
    pub median: f64,
    /// The slowest pass of the row through the fastest of the other.
    pub least: f64,
    /// The fastest pass of the row through the slowest of the other.
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

    /// Whether each of the two could be the other, as far as their passes tell.
    pub fn overlaps(self, other: Self) -> bool {
        self.least <= other.greatest && other.least <= self.greatest
    }
}

/// Which row is meant, in any run.
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
    /// Those of the ranked rows, which come in the order of the report.
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

    /// The ratio of the row of that name, and the row it is held against.
    pub(crate) fn get(&self, name: Name<'_>) -> Option<(Ratio, &'r Row)> {
        self.of_rows.get(&name).copied()
    }
}

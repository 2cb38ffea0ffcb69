//! Compares the ratios of two runs.
//!
//! Speeds of two runs are not comparable across machines and days. Within a run, the passes of a row and its baseline are
//! interleaved on the same bytes, so their ratio is compared. It has changed only if the passes of the two runs do not
//! overlap.

use std::fmt;

use results::Results;
use results::terminal::Baseline;

use crate::picture as scale;
use crate::ratios::{Name, Ratio, Ratios};

/// The ratios to compare, and the limit of a regression.
#[derive(Clone, Debug)]
pub struct CompareOptions {
    /// The baseline of ratios, instead of the default rows.
    pub baseline: Option<Baseline>,
    /// The tolerated loss of a ratio: 0.1 is a tenth.
    pub tolerance: f64,
    /// The peers whose regressions count; `None` for all.
    pub peers: Option<Vec<String>>,
}

impl Default for CompareOptions {
    /// The default baselines, a tenth, our own peer.
    fn default() -> Self {
        Self { baseline: None, tolerance: 0.1, peers: Some(vec![results::PEER.to_owned()]) }
    }
}

/// The differences between two runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunComparison {
    /// Ratios that moved beyond their spread, the worst first.
    pub moved: Vec<ChangedRatio>,
    /// Rows that were ranked before and are not now.
    pub lost: Vec<LostRow>,
    /// Number of ratios whose change is within their spread.
    pub still: usize,
    /// Number of rows that are in one run only, or have another baseline or none there.
    pub incomparable: usize,
}

/// A ratio that moved.
#[derive(Clone, Debug, PartialEq)]
pub struct ChangedRatio {
    /// The row.
    pub row: RowName,
    /// The peer and variant of the baseline in both runs.
    pub against: String,
    /// The ratio in the old run.
    pub old: Ratio,
    /// The ratio in the new run.
    pub new: Ratio,
    /// Whether the ratio fell beyond the tolerance, and the peer counts.
    pub is_regression: bool,
}

/// A row that is not ranked any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LostRow {
    /// The row.
    pub row: RowName,
    /// The note in the new run.
    pub note: Option<String>,
    /// Whether the peer counts.
    pub is_regression: bool,
}

/// The identity of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RowName {
    /// Its task.
    pub task: String,
    /// Its peer.
    pub peer: String,
    /// Its variant.
    pub variant: String,
}

impl RunComparison {
    /// Whether there is a regression.
    pub fn has_regressed(&self) -> bool {
        self.moved.iter().any(|moved| moved.is_regression)
            || self.lost.iter().any(|lost| lost.is_regression)
    }
}

/// Compares the ratios of a new run with an old run's. The rows of both are sorted.
pub fn compare(old: &Results, new: &Results, options: &CompareOptions) -> RunComparison {
    let [old_ratios, new_ratios] = [old, new].map(|run| Ratios::of(run, options.baseline.as_ref()));
    let counts = |peer: &str| {
        options.peers.as_ref().is_none_or(|peers| peers.iter().any(|counted| counted == peer))
    };
    let mut comparison = RunComparison::default();
    for row in &new.rows {
        let name = Name::of(row);
        match (old_ratios.get(name), new_ratios.get(name)) {
            (Some((old, of_old)), Some((new, of_new))) if Name::of(of_old) == Name::of(of_new) => {
                if old.overlaps(new) {
                    comparison.still += 1;
                    continue;
                }
                let has_fallen = new.median < old.median * (1.0 - options.tolerance);
                comparison.moved.push(ChangedRatio {
                    row: name.into(),
                    against: format!("{} {}", of_new.peer, of_new.variant),
                    old,
                    new,
                    is_regression: has_fallen && counts(name.peer),
                });
            }
            (Some(_), None) if !row.is_ranked() => comparison.lost.push(LostRow {
                row: name.into(),
                note: row.note.clone(),
                is_regression: counts(name.peer),
            }),
            _ if row.is_ranked() => comparison.incomparable += 1,
            _ => {}
        }
    }
    let change = |moved: &ChangedRatio| moved.new.median / moved.old.median;
    comparison.moved.sort_by(|a, b| change(a).total_cmp(&change(b)));
    comparison
}

impl From<Name<'_>> for RowName {
    fn from(Name { task, peer, variant }: Name<'_>) -> Self {
        Self { task: task.to_owned(), peer: peer.to_owned(), variant: variant.to_owned() }
    }
}

impl fmt::Display for RowName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = format!("{} {} {}", self.task, self.peer, self.variant);
        // Peers choose their names; control characters would reach the terminal.
        f.write_str(&name.replace(char::is_control, "\u{fffd}"))
    }
}

impl fmt::Display for RunComparison {
    /// A line per ratio that moved and per row that was lost, and one for the others.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for LostRow { row, note, is_regression } in &self.lost {
            let note = note.as_deref().unwrap_or("no reason given").replace(char::is_control, " ");
            writeln!(
                f,
                "{:<11} {row}: ranked before, and not any more: {note}",
                mark(*is_regression, "lost")
            )?;
        }
        for moved in &self.moved {
            let (old, new) = (moved.old.median, moved.new.median);
            let direction = if new < old { "slower" } else { "faster" };
            writeln!(
                f,
                "{:<11} {}: {} → {} × {} ({:+.1} %)",
                mark(moved.is_regression, direction),
                moved.row,
                scale::ratio(old),
                scale::ratio(new),
                moved.against.replace(char::is_control, "\u{fffd}"),
                100.0 * (new / old - 1.0)
            )?;
        }
        let Self { moved, still, incomparable, .. } = self;
        write!(f, "{} moved beyond their spread, {still} did not", moved.len())?;
        if *incomparable > 0 {
            write!(f, ", {incomparable} cannot be compared")?;
        }
        writeln!(f)
    }
}

fn mark(is_regression: bool, otherwise: &'static str) -> &'static str {
    if is_regression { "REGRESSION" } else { otherwise }
}

#[cfg(test)]
mod tests {
    use results::Parity;

    use super::*;
    use crate::samples;

    /// The sample with our verified row faster by this factor in every pass.
    fn with_ours_at(times: f64) -> Results {
        let mut results = samples::results();
        let is_ours = |row: &&mut results::Row| {
            row.peer == results::PEER && row.variant.starts_with("verified")
        };
        let row = results.rows.iter_mut().find(is_ours).unwrap();
        let rate = row.per_s.as_mut().unwrap();
        for rate in [&mut rate.min, &mut rate.median, &mut rate.max] {
            *rate *= times;
        }
        results::terminal::sort(&mut results.rows);
        results
    }

    #[test]
    fn a_run_has_not_moved_from_itself() {
        let results = samples::results();
        let same = compare(&results, &results, &CompareOptions::default());
        assert!(same.moved.is_empty() && same.lost.is_empty() && same.still > 3, "{same}");
        assert!(!same.has_regressed());
    }

    #[test]
    fn a_ratio_that_fell_beyond_its_spread_and_the_tolerance_is_a_regression_of_ours_alone() {
        let (old, new) = (samples::results(), with_ours_at(0.5));
        let fallen = compare(&old, &new, &CompareOptions::default());
        assert_eq!(fallen.moved.len(), 1, "{fallen}");
        assert!(fallen.has_regressed() && fallen.to_string().starts_with("REGRESSION"), "{fallen}");
        let tolerant = CompareOptions { tolerance: 0.6, ..CompareOptions::default() };
        assert!(!compare(&old, &new, &tolerant).has_regressed());
        let of_others = CompareOptions {
            peers: Some(vec!["go-indigo".to_owned()]),
            ..CompareOptions::default()
        };
        assert!(!compare(&old, &new, &of_others).has_regressed());
        assert!(
            compare(&old, &new, &CompareOptions { peers: None, ..CompareOptions::default() })
                .has_regressed()
        );
        assert!(!compare(&new, &old, &CompareOptions::default()).has_regressed(), "it rose");
    }

    #[test]
    fn what_passes_explain_has_not_moved() {
        let slightly =
            compare(&samples::results(), &with_ours_at(0.97), &CompareOptions::default());
        assert!(slightly.moved.is_empty(), "{slightly}");
    }

    #[test]
    fn another_speed_of_the_whole_machine_moves_no_ratio() {
        let mut new = samples::results();
        for rate in new.rows.iter_mut().filter_map(|row| row.per_s.as_mut()) {
            *rate = results::Rate {
                min: rate.min / 3.0,
                median: rate.median / 3.0,
                max: rate.max / 3.0,
            };
        }
        assert!(compare(&samples::results(), &new, &CompareOptions::default()).moved.is_empty());
    }

    #[test]
    fn a_row_that_is_not_ranked_any_more_is_lost_and_one_that_was_not_measured_is_not() {
        let (old, mut new) = (samples::results(), samples::results());
        let row = new.rows.iter_mut().find(|row| row.peer == results::PEER).unwrap();
        (row.parity, row.note) = (Parity::Mismatch, Some("links 6\u{1b}[2J".to_owned()));
        results::terminal::sort(&mut new.rows);
        let lost = compare(&old, &new, &CompareOptions::default());
        assert!(lost.has_regressed() && lost.lost.len() == 1, "{lost}");
        assert!(!lost.to_string().contains('\u{1b}'));
        new.rows.retain(|row| row.peer != results::PEER);
        assert!(!compare(&old, &new, &CompareOptions::default()).has_regressed());
    }
}

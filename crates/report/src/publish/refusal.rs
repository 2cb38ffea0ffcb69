//! Which runs are not published: `bench/METHOD.md` has the rule.

use std::fmt;

use results::{EVEN, Results, Row, is_uneven};

use super::used_avx512;
use crate::standing;

/// Why a run is not published.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnpublishedRun {
    /// Settings, rows or peers that a published run may not have or lack, one sentence per fault.
    pub faults: Vec<String>,
    /// The tasks of which more than half of the rows are uneven.
    pub uneven: Vec<UnevenTask>,
}

/// The evenness of a task's rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnevenTask {
    /// The task.
    pub task: String,
    /// Measured rows.
    pub rows: usize,
    /// Rows whose middle half of passes spreads over the limit.
    pub uneven: usize,
    /// Rows whose fastest and slowest pass differ by more than the limit.
    pub wide: usize,
}

/// Why this run may not be published; `None` if it may. The rows must be in the order of the report.
pub fn refusal(results: &Results) -> Option<UnpublishedRun> {
    let mut faults = faults(results);
    if !used_avx512(results) {
        faults.push("our rows did not use AVX-512".to_owned());
    }
    UnpublishedRun { faults, uneven: uneven(results) }.if_any()
}

/// The same of a second run, for processors without AVX-512: our rows may be kept to a level below it.
pub fn refusal_without_avx512(results: &Results) -> Option<UnpublishedRun> {
    let mut faults = faults(results);
    if used_avx512(results) {
        faults.push("our rows used AVX-512".to_owned());
    }
    UnpublishedRun { faults, uneven: uneven(results) }.if_any()
}

fn faults(results: &Results) -> Vec<String> {
    let mut faults = Vec::new();
    match &results.settings {
        None => faults.push("its settings are unknown".to_owned()),
        Some(settings) => {
            faults.extend(settings.quick.then(|| "it is a quick run".to_owned()));
            let once = settings.one_pass_over_ms.is_some();
            faults
                .extend(once.then(|| "its slow rows made one pass; use `bench --all`".to_owned()));
            let few = settings.passes < LEAST_PASSES;
            faults.extend(few.then(|| format!("it has fewer than {LEAST_PASSES} passes")));
            faults.extend(
                settings.corpus.as_ref().map(|name| format!("it measures another corpus, {name}")),
            );
            let limited = settings.backend.as_ref().filter(|level| *level != "avx2");
            faults.extend(limited.map(|level| format!("our rows were kept to {level}")));
        }
    }
    let missing = standing::missing(results).into_iter();
    faults.extend(
        missing.map(|work| format!("it has no ranked rows of us and of a peer for `{work}`")),
    );
    faults
}

fn uneven(results: &Results) -> Vec<UnevenTask> {
    let tasks = results.rows.chunk_by(|a, b| a.task == b.task);
    let tasks = tasks.map(|rows| rows.iter().collect::<Vec<&Row>>()).filter(|rows| is_uneven(rows));
    tasks.map(|rows| UnevenTask::of(&rows)).collect()
}

impl UnpublishedRun {
    fn if_any(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

impl UnevenTask {
    fn of(rows: &[&Row]) -> Self {
        let over = |spread: fn(&Row) -> f64| rows.iter().filter(|row| spread(row) > EVEN).count();
        Self {
            task: rows[0].task.clone(),
            rows: rows.iter().filter(|row| row.per_s.is_some()).count(),
            uneven: over(Row::middle_spread),
            wide: over(Row::spread),
        }
    }
}

impl fmt::Display for UnpublishedRun {
    /// A line per fault, and a table of the uneven tasks.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "this run is not published (bench/METHOD.md, “Publishing a run”)")?;
        self.faults.iter().try_for_each(|fault| writeln!(f, "- {fault}"))?;
        if self.uneven.is_empty() {
            return Ok(());
        }
        let percent = 100.0 * EVEN;
        writeln!(
            f,
            "- more than half of the rows of a task spread over {percent:.0} %; repeat the whole run:\n"
        )?;
        writeln!(
            f,
            "  {:<20} {:>5} {:>16} {:>16}",
            "task", "rows", "middle half over", "all passes over"
        )?;
        for UnevenTask { task, rows, uneven, wide } in &self.uneven {
            // Documents may name tasks; control characters would reach the terminal.
            let task = task.replace(char::is_control, "\u{fffd}");
            writeln!(f, "  {task:<20} {rows:>5} {uneven:>16} {wide:>16}")?;
        }
        Ok(())
    }
}

/// Passes of a published run.
const LEAST_PASSES: u32 = 5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    fn with_passes(passes: &[u64]) -> Results {
        let mut results = samples::results();
        for row in results.rows.iter_mut().filter(|row| row.task == "decode" && row.per_s.is_some())
        {
            row.passes_ns = passes.to_vec();
            row.per_s = results::Rate::of(row.units, passes);
        }
        results
    }

    #[test]
    fn a_run_with_an_uneven_task_is_refused_with_the_table_of_it() {
        let even = refusal(&with_passes(&[100, 100, 101, 102, 103]));
        assert!(even.is_none_or(|refusal| refusal.uneven.is_empty()));
        let refusal = refusal(&with_passes(&[100, 100, 150, 200, 200])).unwrap();
        assert_eq!(refusal.uneven.len(), 1);
        let (task, text) = (&refusal.uneven[0], refusal.to_string());
        assert_eq!((task.task.as_str(), task.uneven), ("decode", task.rows));
        assert!(text.contains("over 20 %") && text.contains("  decode "), "{text}");
    }

    #[test]
    fn one_slow_pass_of_each_row_refuses_no_run() {
        let refusal = refusal(&with_passes(&[100, 100, 101, 102, 200]));
        assert!(refusal.is_none_or(|refusal| refusal.uneven.is_empty()));
    }

    #[test]
    fn a_quick_run_one_of_few_passes_one_on_less_of_the_processor_and_one_without_a_headline_are_refused()
     {
        let mut results = samples::results();
        let settings = results.settings.as_mut().expect("the sample has settings");
        (settings.passes, settings.quick) = (3, true);
        settings.backend = Some("avx2".to_owned());
        results.rows.retain(|row| row.task != "repo");
        let text = refusal(&results).unwrap().to_string();
        for part in ["a quick run", "fewer than 5 passes", "did not use AVX-512", "`repo total`"] {
            assert!(text.contains(part), "{part}: {text}");
        }
        results.settings.as_mut().unwrap().backend = Some("portable".to_owned());
        let text = refusal_without_avx512(&results).unwrap().to_string();
        assert!(text.contains("kept to portable") && text.contains("`repo total`"), "{text}");
    }

    #[test]
    fn a_run_kept_to_avx2_is_published_as_the_one_without_avx512_and_not_as_the_other() {
        let mut results = samples::published();
        assert_eq!(refusal(&results), None);
        let text = refusal_without_avx512(&results).unwrap().to_string();
        assert!(text.contains("our rows used AVX-512"), "{text}");
        results.settings.as_mut().unwrap().backend = Some("avx2".to_owned());
        assert_eq!(refusal_without_avx512(&results), None);
        assert!(refusal(&results).is_some());
    }
}

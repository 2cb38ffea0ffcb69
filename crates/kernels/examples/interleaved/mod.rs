//! Rows of a benchmark that run interleaved, so that other load on the machine affects all of them.

use std::time::Instant;

/// The rows of a benchmark, all of which do the same number of things.
pub(crate) struct Rows<'a> {
    rows: Vec<Row<'a>>,
    things: usize,
}

struct Row<'a> {
    name: String,
    /// The index of the row that it is compared with.
    baseline: usize,
    run: Box<dyn FnMut() + 'a>,
    /// Nanoseconds per thing, one entry a round.
    times_ns: Vec<f64>,
}

impl<'a> Rows<'a> {
    /// No rows yet; all will do `things` things.
    pub(crate) fn new(things: usize) -> Self {
        Self { rows: Vec::new(), things }
    }

    /// Adds a row that is compared with the row at `baseline`.
    pub(crate) fn push(
        &mut self,
        name: impl Into<String>,
        baseline: usize,
        run: impl FnMut() + 'a,
    ) {
        let run = Box::new(run);
        self.rows.push(Row { name: name.into(), baseline, run, times_ns: Vec::new() });
    }

    /// Runs all rows in turn, `rounds` times, and prints per thing the median and the best of the rounds, in CPU time where the
    /// system tells it, and both as ratios to the baseline's.
    pub(crate) fn print(mut self, rounds: usize) {
        for _ in 0..rounds {
            for row in &mut self.rows {
                let start = Clock::now();
                (row.run)();
                row.times_ns.push(start.elapsed_ns() / self.things as f64);
            }
        }
        for row in &mut self.rows {
            row.times_ns.sort_by(f64::total_cmp);
        }
        println!(
            "{:45} {:>9} {:>9} {:>9}   ratio of medians, of bests",
            "", "median", "best", "/s"
        );
        for Row { name, baseline, times_ns, .. } in &self.rows {
            let theirs = &self.rows[*baseline].times_ns;
            let (median, best) = (times_ns[rounds / 2], times_ns[0]);
            let (by_median, by_best) = (theirs[rounds / 2] / median, theirs[0] / best);
            let rate = 1e9 / median;
            println!(
                "{name:45} {median:6.0} ns {best:6.0} ns {rate:9.0}   {by_median:5.2} x {by_best:5.2} x"
            );
        }
    }
}

/// The CPU time of this thread, or where the system does not tell it, the time.
enum Clock {
    Cpu(f64),
    Wall(Instant),
}

impl Clock {
    fn now() -> Self {
        cpu_ns().map_or_else(|| Self::Wall(Instant::now()), Self::Cpu)
    }

    fn elapsed_ns(&self) -> f64 {
        match self {
            Self::Cpu(start) => cpu_ns().unwrap_or(f64::NAN) - start,
            Self::Wall(start) => start.elapsed().as_nanos() as f64,
        }
    }
}

fn cpu_ns() -> Option<f64> {
    // The scheduler counts when it runs.
    std::thread::yield_now();
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split(' ').next()?.parse().ok()
}

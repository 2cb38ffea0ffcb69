//! Plain progress lines: one at every step of a run, and one after every interval without a step.

use std::io::Write;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use ::bench::Forecast;

/// The current step of a run.
#[derive(Clone, Debug)]
pub(super) struct Moment {
    /// The step: a line is printed when it changes.
    pub(super) step: String,
    /// The step with how far it is, for the lines in between.
    pub(super) detail: String,
    /// The forecast of the run's end.
    pub(super) forecast: Forecast,
}

/// A thread that prints the lines.
pub(super) struct StepLog {
    moments: Sender<Moment>,
    printer: JoinHandle<()>,
}

impl StepLog {
    /// Prints to `out`, at least once in `interval`.
    pub(super) fn new(out: impl Write + Send + 'static, interval: Duration) -> Self {
        let (moments, received) = channel();
        let printer = Printer { out, began: Instant::now(), interval };
        Self { moments, printer: thread::spawn(move || printer.run(&received)) }
    }

    /// Updates the current step of the run.
    pub(super) fn show(&self, moment: Moment) {
        // Fails only if the printer has ended, because nothing reads its lines.
        let _ = self.moments.send(moment);
    }

    /// Waits until all lines are printed.
    pub(super) fn end(self) {
        drop(self.moments);
        let _ = self.printer.join();
    }
}

struct Printer<W> {
    out: W,
    began: Instant,
    interval: Duration,
}

impl<W: Write> Printer<W> {
    fn run(mut self, moments: &Receiver<Moment>) {
        let mut last: Option<Moment> = None;
        let mut printed = Instant::now();
        loop {
            let text = match moments.recv_timeout(self.interval.saturating_sub(printed.elapsed())) {
                Ok(moment) => {
                    let is_next = last.as_ref().is_none_or(|last| last.step != moment.step);
                    let text = is_next.then(|| moment.step.clone());
                    last = Some(moment);
                    text
                }
                Err(RecvTimeoutError::Timeout) => {
                    printed = Instant::now();
                    last.as_ref().map(|last| last.detail.clone())
                }
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let (Some(text), Some(moment)) = (text, &mut last) else { continue };
            if self.print(&text, &mut moment.forecast).is_err() {
                return;
            }
            printed = Instant::now();
        }
    }

    fn print(&mut self, text: &str, forecast: &mut Forecast) -> std::io::Result<()> {
        let elapsed = self.began.elapsed();
        let (now, total) = (clock(elapsed), clock(elapsed + forecast.estimate(elapsed).left));
        writeln!(self.out, "[{now:>5} of about {total:>5}] {text}")
    }
}

/// Minutes and seconds, or hours, minutes and seconds.
fn clock(time: Duration) -> String {
    let seconds = time.as_secs();
    let hours = seconds / 3_600;
    let minutes = seconds / 60 % 60;
    let seconds = seconds % 60;
    match hours {
        0 => format!("{minutes}:{seconds:02}"),
        _ => format!("{hours}:{minutes:02}:{seconds:02}"),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use ::bench::{Plan, Progress};

    use super::*;

    #[derive(Clone, Default)]
    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl Lines {
        /// The lines without their times.
        fn texts(&self) -> Vec<String> {
            let text = String::from_utf8(self.0.lock().unwrap().clone()).unwrap();
            text.lines().map(|line| line.split_once("] ").unwrap().1.to_owned()).collect()
        }
    }

    impl Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn moment(step: &str, detail: &str) -> Moment {
        let (step, detail) = (step.to_owned(), detail.to_owned());
        let mut forecast = Forecast::of(&Plan { tasks: Vec::new(), ..Plan::default() });
        forecast.observe(&Progress::Planned { builds: 5 }, Duration::ZERO);
        Moment { step, detail, forecast }
    }

    #[test]
    fn each_step_is_a_line_and_its_progress_is_none() {
        let lines = Lines::default();
        let log = StepLog::new(lines.clone(), Duration::from_secs(3_600));
        for (step, detail) in [("build a", "1"), ("build a", "2"), ("measure", "3")] {
            log.show(moment(step, detail));
        }
        log.end();
        assert_eq!(lines.texts(), ["build a", "measure"]);
    }

    #[test]
    fn a_long_step_is_printed_again_after_each_interval_with_how_far_it_is() {
        let lines = Lines::default();
        let log = StepLog::new(lines.clone(), Duration::from_millis(5));
        log.show(moment("build a", "build a, step 1"));
        while lines.texts().len() < 3 {
            thread::sleep(Duration::from_millis(1));
        }
        log.end();
        assert_eq!(lines.texts()[..3], ["build a", "build a, step 1", "build a, step 1"]);
    }

    #[test]
    fn a_line_has_the_elapsed_and_the_expected_time() {
        let lines = Lines::default();
        let log = StepLog::new(lines.clone(), Duration::from_secs(3_600));
        log.show(moment("build a", ""));
        log.end();
        let text = String::from_utf8(lines.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text, "[ 0:00 of about  1:40] build a\n");
    }

    #[test]
    fn times_are_minutes_and_seconds_and_then_hours() {
        let text = |seconds| clock(Duration::from_secs(seconds));
        assert_eq!([text(9), text(151), text(3_723)], ["0:09", "2:31", "1:02:03"]);
    }
}

//! A command over many inputs: on several threads, with the output in the order of the inputs.
//!
//! A failed input does not end the others. The exit code is the code of the first kind that occurs: 1 if data was
//! refused, 2 for a mistyped input, 3 for the network, 4 for a local file.

use std::io::Write;
use std::num::NonZeroUsize;
use std::thread;

use clap::Args;
use codec::printable::PrintableLines;

use crate::failure::Failure;
use crate::in_order;
use crate::inputs::{Input, NamedInput};
use crate::log::{self, Level};
use crate::output::{Output, write_json_line};
use crate::progress::ProgressLine;

/// How many inputs are worked on at once, or threads on a single one.
#[derive(Clone, Copy, Debug, Args)]
pub struct JobsArgs {
    /// Work on this many arguments at once, or with this many threads on a single large file; every argument takes its
    /// own memory [default: the number of cores].
    #[arg(long, value_name = "N")]
    jobs: Option<NonZeroUsize>,
}

impl JobsArgs {
    /// The number of threads.
    pub fn count(self) -> NonZeroUsize {
        threads(self.jobs)
    }
}

/// The requested number of threads, up to the maximum, or the number of cores.
pub fn threads(jobs: Option<NonZeroUsize>) -> NonZeroUsize {
    jobs.unwrap_or_else(cores).min(MAX_JOBS)
}

/// The number of cores that this process may use.
pub fn cores() -> NonZeroUsize {
    thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).min(MAX_JOBS)
}

/// The outcome of an input.
pub struct Outcome {
    /// The output: in JSON of every input, in text of one that did not fail.
    pub printed: Vec<u8>,
    /// Whether it failed.
    pub result: Result<(), Failure>,
}

/// Calls `work` with the name of every input, prints the outcomes in the order of the inputs, and in the end how many
/// are `done`, such as "proved".
///
/// # Errors
/// The failure with the lowest exit code, with the summary as its message.
pub fn run(
    inputs: impl Iterator<Item = Input> + Send,
    jobs: &JobsArgs,
    done: &str,
    json: bool,
    output: Output,
    work: impl Fn(&str) -> Result<Outcome, Failure> + Sync,
) -> Result<(), Failure> {
    let mut printer = Printer { done, json, output, line: ProgressLine::new(), counts: [0; 5] };
    let worker = || |input| work_on(input, &work, json);
    in_order::run(inputs, jobs.count(), worker, |outcome| printer.print(outcome?))?;
    printer.finish()
}

fn work_on(
    input: Input,
    work: &impl Fn(&str) -> Result<Outcome, Failure>,
    json: bool,
) -> Result<Outcome, Failure> {
    match input {
        Ok(NamedInput { name, origin }) => work(&name).map(|Outcome { printed, result }| Outcome {
            printed,
            result: result.map_err(|failure| failure.after(&origin)),
        }),
        Err(failure) => Ok(not_named(failure, json)),
    }
}

/// The outcome of an argument that names no input.
fn not_named(failure: Failure, json: bool) -> Outcome {
    let mut printed = Vec::new();
    if json {
        let line = serde_json::json!({ "error": failure.message() });
        // Writing to memory does not fail.
        let _ = write_json_line(&mut printed, &line);
    }
    Outcome { printed, result: Err(failure) }
}

/// Prints outcomes, and counts them.
struct Printer<'d> {
    done: &'d str,
    json: bool,
    output: Output,
    line: ProgressLine,
    /// Outcomes by exit code: done, refused, usage, network, local.
    counts: [u64; 5],
}

impl Printer<'_> {
    fn print(&mut self, Outcome { printed, result }: Outcome) -> Result<(), Failure> {
        let mut text = printed;
        if let Err(failure) = &result
            && let (false, Some(message)) = (self.json, failure.message())
        {
            text = format!("{}\n", PrintableLines(message)).into_bytes();
        }
        let code = result.map_or_else(|failure| failure.code(), |()| 0);
        self.counts[usize::from(code).min(4)] += 1;
        let output = self.output;
        let mut written = Ok(());
        self.line.suspend(|| written = output.stdout().write_all(&text));
        let all: u64 = self.counts.iter().sum();
        self.line.step(format!("{} of {all} {}", self.counts[0], self.done));
        Ok(written?)
    }

    /// Prints the summary, or returns it as the failure.
    fn finish(self) -> Result<(), Failure> {
        let Self { done, line, counts: [good, refused, usage, network, local], .. } = self;
        line.end();
        let failed = usage + network + local;
        let all = good + refused + failed;
        let summary = format!("{good} of {all} {done}, {refused} refused, {failed} failed");
        match (refused, usage, network) {
            _ if good == all => Ok(log::print(Level::Info, &summary)?),
            (1.., ..) => Err(Failure::Refused(summary)),
            (0, 1.., _) => Err(Failure::Usage(summary)),
            (0, 0, 1..) => Err(Failure::Network(summary)),
            _ => Err(Failure::Local(summary)),
        }
    }
}

/// Maximum number of jobs.
const MAX_JOBS: NonZeroUsize = NonZeroUsize::new(256).expect("not 0");

//! The serving loop: reads requests line by line, runs and times the loaded work, writes one answer a line.
//!
//! The clock is read here, around [`Work::pass`] alone, so that every Rust runner measures in the same way.

use std::borrow::Cow;
use std::io::{self, BufRead, Write};
use std::time::Instant;

use serde::Serialize;

use crate::{BoxError, Description, Failure, Load, Loaded, Proof, Request, Timing};

/// A runner's tasks.
pub trait Service {
    /// Names the engine, the tasks, their variants and checks.
    fn describe(&self) -> Description;

    /// Prepares the work and passes it to `session`, which returns when other work is requested. The work may
    /// borrow from locals of this call.
    ///
    /// # Errors
    /// If the files cannot be read or the variant is unknown; `session` was not called then.
    fn load(&self, load: &Load, session: &mut Session<'_>) -> Result<(), BoxError>;
}

/// Serves the requests for one loaded work.
pub type Session<'s> = dyn FnMut(&mut dyn Work) + 's;

/// A task with its files in memory.
pub trait Work {
    /// The loaded data.
    fn loaded(&self) -> Loaded;

    /// Does the work once and counts the result.
    ///
    /// # Errors
    /// If the work as a whole fails.
    fn prove(&mut self) -> Result<Proof, BoxError>;

    /// Does the same work again, uncounted.
    ///
    /// # Errors
    /// If the work as a whole fails.
    fn pass(&mut self) -> Result<Parts, BoxError>;
}

/// The times of the parts of a pass, for tasks that have parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Parts {
    /// Nanoseconds by stage.
    pub stages_ns: Vec<(Cow<'static, str>, u64)>,
    /// Nanoseconds of every [`CHUNK_UNITS`](crate::CHUNK_UNITS) consecutive units.
    pub chunks_ns: Vec<u64>,
}

/// Splits the time of a pass among named stages.
#[derive(Clone, Debug)]
pub struct StageClock {
    since: Instant,
    parts: Parts,
}

impl StageClock {
    /// Starts the clock.
    pub fn start() -> Self {
        Self { since: Instant::now(), parts: Parts::default() }
    }

    /// Adds the time since the last lap to `stage`.
    pub fn lap(&mut self, stage: impl Into<Cow<'static, str>>) {
        let now = Instant::now();
        let (stage, ns) = (stage.into(), (now - self.since).as_nanos() as u64);
        match self.parts.stages_ns.iter_mut().find(|(known, _)| *known == stage) {
            Some((_, total)) => *total += ns,
            None => self.parts.stages_ns.push((stage, ns)),
        }
        self.since = now;
    }

    /// Adds the time since the last lap, such as the time of freeing memory, to the last stage.
    pub fn extend_last(&mut self) {
        if let Some((_, ns)) = self.parts.stages_ns.last_mut() {
            *ns += self.since.elapsed().as_nanos() as u64;
        }
    }

    /// The stages.
    pub fn into_parts(self) -> Parts {
        self.parts
    }
}

/// Answers `requests` until they end.
///
/// # Errors
/// If reading or writing fails.
pub fn serve(
    service: &impl Service,
    requests: impl BufRead,
    answers: impl Write,
) -> io::Result<()> {
    let mut connection = Connection { lines: requests.lines(), answers };
    let mut next = connection.next_request()?;
    while let Some(request) = next {
        next = match request {
            Request::Load(load) => connection.load(service, &load)?,
            request => {
                match request {
                    Request::Describe => connection.answer(&service.describe())?,
                    _ => connection.fail(&"nothing is loaded")?,
                }
                connection.next_request()?
            }
        };
    }
    Ok(())
}

struct Connection<L, W> {
    lines: L,
    answers: W,
}

impl<L: Iterator<Item = io::Result<String>>, W: Write> Connection<L, W> {
    /// Loads, serves the requests for the loaded work, and returns the request after them.
    fn load(&mut self, service: &impl Service, load: &Load) -> io::Result<Option<Request>> {
        let mut next = Ok(None);
        if let Err(error) = service.load(load, &mut |work| next = self.work(work)) {
            self.fail(&error)?;
            return self.next_request();
        }
        next
    }

    fn work(&mut self, work: &mut dyn Work) -> io::Result<Option<Request>> {
        self.answer(&work.loaded())?;
        loop {
            match self.next_request()? {
                Some(Request::Prove) => self.answer_or_fail(work.prove())?,
                Some(Request::Pass) => self.answer_or_fail(timed(work))?,
                other => return Ok(other),
            }
        }
    }

    /// The next request that can be read; the others are answered with an error.
    fn next_request(&mut self) -> io::Result<Option<Request>> {
        while let Some(line) = self.lines.next().transpose()? {
            match serde_json::from_str(&line) {
                Ok(request) => return Ok(Some(request)),
                Err(error) => self.fail(&error)?,
            }
        }
        Ok(None)
    }

    fn answer_or_fail(&mut self, outcome: Result<impl Serialize, BoxError>) -> io::Result<()> {
        match outcome {
            Ok(answer) => self.answer(&answer),
            Err(error) => self.fail(&error),
        }
    }

    fn fail(&mut self, error: &dyn ToString) -> io::Result<()> {
        self.answer(&Failure { error: error.to_string() })
    }

    fn answer(&mut self, answer: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.answers, answer)?;
        self.answers.write_all(b"\n")?;
        self.answers.flush()
    }
}

fn timed(work: &mut dyn Work) -> Result<Timing, BoxError> {
    let start = Instant::now();
    let parts = work.pass()?;
    let ns = start.elapsed().as_nanos() as u64;
    let stages_ns = parts.stages_ns.into_iter().map(|(name, ns)| (name.into_owned(), ns));
    Ok(Timing { ns, stages_ns: stages_ns.collect(), chunks_ns: parts.chunks_ns })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Counts;

    /// Serves any task; the variant names the fault.
    struct Echo;

    struct Variant<'v>(&'v str);

    impl Service for Echo {
        fn describe(&self) -> Description {
            let language = "rust".to_owned();
            let (engine, version) = ("echo".to_owned(), "1".to_owned());
            Description { engine, version, language, tasks: [].into() }
        }

        fn load(&self, load: &Load, session: &mut Session<'_>) -> Result<(), BoxError> {
            if load.variant == "unknown" {
                return Err("no such variant".into());
            }
            session(&mut Variant(&load.variant));
            Ok(())
        }
    }

    impl Work for Variant<'_> {
        fn loaded(&self) -> Loaded {
            Loaded { units: 1, bytes: self.0.len() as u64 }
        }

        fn prove(&mut self) -> Result<Proof, BoxError> {
            Ok(Counts::default().with("variant", self.0).into())
        }

        fn pass(&mut self) -> Result<Parts, BoxError> {
            if self.0 == "broken" {
                return Err("it broke".into());
            }
            let mut clock = StageClock::start();
            ["parse", "walk", "walk"].into_iter().for_each(|stage| clock.lap(stage));
            clock.extend_last();
            Ok(clock.into_parts())
        }
    }

    fn answers(requests: &str) -> Vec<serde_json::Value> {
        let mut answers = Vec::new();
        serve(&Echo, requests.as_bytes(), &mut answers).unwrap();
        let lines = str::from_utf8(&answers).unwrap().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    fn load(variant: &str) -> String {
        format!("{{\"cmd\":\"load\",\"task\":\"t\",\"variant\":\"{variant}\",\"files\":[]}}\n")
    }

    #[test]
    fn loaded_work_is_proved_and_timed_until_another_is_loaded() {
        let rest = "{\"cmd\":\"prove\"}\n{\"cmd\":\"pass\"}\n";
        let answers = answers(&format!("{}{rest}{}{rest}", load("one"), load("two")));
        assert_eq!(answers[0], serde_json::json!({ "units": 1, "bytes": 3 }));
        assert_eq!(answers[1]["counts"]["variant"], "one");
        assert_eq!(answers[4]["counts"]["variant"], "two");
        let stages: Vec<_> = answers[2]["stages_ns"].as_object().unwrap().keys().collect();
        assert_eq!(stages, ["parse", "walk"]);
        let ns = |value: &serde_json::Value| value.as_u64().unwrap();
        let sum: u64 = answers[2]["stages_ns"].as_object().unwrap().values().map(ns).sum();
        assert!(sum <= ns(&answers[2]["ns"]));
    }

    #[test]
    fn a_request_that_fails_is_answered_with_an_error_and_the_session_goes_on() {
        let answers = answers(&format!(
            "{{\"cmd\":\"pass\"}}\n<html>\n{}{}{{\"cmd\":\"pass\"}}\nno\n{{\"cmd\":\"describe\"}}\n",
            load("unknown"),
            load("broken"),
        ));
        let errors: Vec<bool> = answers.iter().map(|answer| answer["error"].is_string()).collect();
        assert_eq!(errors, [true, true, true, false, true, true, false]);
        assert_eq!(answers[2]["error"], "no such variant");
        assert_eq!(answers[6]["language"], "rust");
    }
}

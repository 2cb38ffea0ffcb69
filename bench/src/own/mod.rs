//! How do we answer the harness ourselves? The same protocol as every peer, served by the command's
//! own binary.

mod decode;

use std::collections::BTreeMap;
use std::io::{self, BufRead, Lines, Write};
use std::path::PathBuf;
use std::time::Instant;

use serde::Serialize;

use crate::Task;
use crate::counts::Counts;
use crate::protocol::{Description, Failure, Loaded, Proof, Request, Timing};

/// The name under which we appear in results.
pub const PEER: &str = "wireproof";

/// Answers `requests` until they end.
///
/// # Errors
/// If reading or writing fails.
pub fn serve(requests: impl BufRead, answers: impl Write) -> io::Result<()> {
    let mut session = Session { requests: requests.lines(), answers };
    let mut next = session.next()?;
    while let Some(request) = next {
        next = session.obey(request)?;
    }
    Ok(())
}

struct Session<R: BufRead, W: Write> {
    requests: Lines<R>,
    answers: W,
}

impl<R: BufRead, W: Write> Session<R, W> {
    /// Answers a request that comes while nothing is loaded, and what follows from it. Answers the
    /// request after that.
    fn obey(&mut self, request: Request) -> io::Result<Option<Request>> {
        match request {
            Request::Describe => self.say(&describe())?,
            Request::Prove | Request::Pass => self.refuse("nothing is loaded")?,
            Request::Load { task, variant, files } => {
                return self.load(&task, &variant, &files);
            }
        }
        self.next()
    }

    /// The files live as long as this call, and the work borrows from them.
    fn load(
        &mut self,
        task: &str,
        variant: &str,
        files: &[PathBuf],
    ) -> io::Result<Option<Request>> {
        match read(files) {
            Ok(files) => match open(task, variant, &files) {
                Ok(work) => return self.work(work),
                Err(error) => self.refuse(&error)?,
            },
            Err(error) => self.refuse(&error)?,
        }
        self.next()
    }

    /// Answers requests about `work` until one asks for something else.
    fn work(&mut self, mut work: Box<dyn Work + '_>) -> io::Result<Option<Request>> {
        self.say(&work.loaded())?;
        loop {
            match self.next()? {
                Some(Request::Prove) => self.say(&Proof { counts: work.prove() })?,
                Some(Request::Pass) => {
                    let start = Instant::now();
                    work.pass();
                    let ns = start.elapsed().as_nanos() as u64;
                    self.say(&Timing { ns })?;
                }
                other => return Ok(other),
            }
        }
    }

    /// The next request that can be read; the others are refused.
    fn next(&mut self) -> io::Result<Option<Request>> {
        while let Some(line) = self.requests.next().transpose()? {
            match serde_json::from_str(&line) {
                Ok(request) => return Ok(Some(request)),
                Err(error) => self.refuse(&error.to_string())?,
            }
        }
        Ok(None)
    }

    fn refuse(&mut self, error: &str) -> io::Result<()> {
        self.say(&Failure { error: error.to_owned() })
    }

    fn say(&mut self, answer: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.answers, answer)?;
        self.answers.write_all(b"\n")?;
        self.answers.flush()
    }
}

/// A task made ready.
trait Work {
    /// What was read.
    fn loaded(&self) -> Loaded;
    /// Does the work once and counts what comes out.
    fn prove(&mut self) -> Counts;
    /// Does the same work once, uncounted.
    fn pass(&mut self);
}

fn describe() -> Description {
    let variants = |(name, checks): (String, &[&str])| {
        (name, checks.iter().map(|check| (*check).to_owned()).collect())
    };
    let decode = decode::variants().map(variants).collect();
    Description {
        engine: concat!("wireproof ", env!("CARGO_PKG_VERSION")).to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        language: "rust".to_owned(),
        tasks: BTreeMap::from([(Task::Decode.name().to_owned(), decode)]),
    }
}

fn read(files: &[PathBuf]) -> Result<Vec<Vec<u8>>, String> {
    let read = |path: &PathBuf| {
        std::fs::read(path).map_err(|error| format!("{}: {error}", path.display()))
    };
    files.iter().map(read).collect()
}

fn open<'f>(task: &str, variant: &str, files: &'f [Vec<u8>]) -> Result<Box<dyn Work + 'f>, String> {
    let opened = match Task::from_name(task) {
        Some(Task::Decode) => decode::open(variant, files)?,
        None => None,
    };
    opened.ok_or_else(|| format!("no variant {variant:?} of task {task:?} here"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use wireproof::atproto::corpus;
    use wireproof::atproto::event::{Event, Info};

    fn answers(requests: &str) -> Vec<serde_json::Value> {
        let mut answers = Vec::new();
        serve(requests.as_bytes(), &mut answers).unwrap();
        let lines = str::from_utf8(&answers).unwrap().lines();
        lines.map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn every_variant_that_is_described_can_be_loaded_proved_and_timed() {
        let frame = Event::Info(Info { name: "OutdatedCursor", message: None }).to_frame();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), corpus::write([frame.as_slice(), b"bad"])).unwrap();
        for (variant, _) in decode::variants() {
            let load = Request::Load {
                task: "decode".to_owned(),
                variant: variant.clone(),
                files: vec![file.path().to_owned()],
            };
            let load = serde_json::to_string(&load).unwrap();
            let answers =
                answers(&format!("{load}\n{{\"cmd\":\"prove\"}}\n{{\"cmd\":\"pass\"}}\n"));
            assert_eq!(answers[0]["units"], 2, "{variant}");
            assert_eq!(answers[1]["counts"]["frames"], 2, "{variant}");
            assert_ne!(answers[1]["counts"]["errors"], 0, "{variant}");
            assert!(answers[2]["ns"].is_u64(), "{variant}");
        }
    }

    #[test]
    fn what_cannot_be_done_is_answered_with_an_error_and_the_session_goes_on() {
        let answers = answers(concat!(
            "{\"cmd\":\"pass\"}\n",
            "<html>\n",
            "{\"cmd\":\"load\",\"task\":\"decode\",\"variant\":\"verified/arena-reuse\",\"files\":[\"/nowhere\"]}\n",
            "{\"cmd\":\"load\",\"task\":\"paint\",\"variant\":\"red\",\"files\":[]}\n",
            "{\"cmd\":\"describe\"}\n",
        ));
        assert!(answers[..4].iter().all(|answer| answer["error"].is_string()), "{answers:?}");
        assert_eq!(answers[4]["language"], "rust");
    }
}

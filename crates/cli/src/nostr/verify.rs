//! `wireproof nostr verify`: verifies the ids and signatures of events.

use std::fmt;
use std::path::Path;
use std::time::Instant;

use ::bench::nostr::Group;
use serde::Serialize;
use wireproof::kernels::hex;
use wireproof::nostr::canonical::ControlChars;
use wireproof::nostr::{DecodeError, Event, EventFault, verify_many_with};

use super::VerifyArgs;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::output::Output;

pub(super) fn run(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let input = args.events.open()?;
    let mut report = EventsReport::default();
    let mut findings = Findings::new(output, args.json, args.all);
    let read = input.each_group(|group| report.add(&group, args, &mut findings));
    findings.finish(&report, EventsReport::to_text)?;
    read?;
    match report.invalid + report.unreadable {
        0 => Ok(()),
        refused => Err(Failure::refused(&args.events.file, format_args!("{refused} refused"))),
    }
}

/// The verdicts on all events, counted.
#[derive(Debug, Default, Serialize)]
struct EventsReport {
    events: u64,
    valid: u64,
    /// Valid events whose id is the hash of the form with escaped control characters.
    id_escaped: u64,
    /// Events with a wrong id or signature.
    invalid: u64,
    /// Entries that are no event.
    unreadable: u64,
    /// Time of hashing and verifying alone.
    seconds: f64,
}

/// A refused event.
#[derive(Debug, Serialize)]
struct EventFinding {
    file: String,
    /// Index of the event in the file.
    index: u64,
    id: Option<String>,
    code: &'static str,
    message: String,
}

impl fmt::Display for EventFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, index, id, message, .. } = self;
        let id = id.as_ref().map_or(String::new(), |id| format!(" {id}"));
        write!(f, "{file}: event {index}{id}: {message}")
    }
}

impl EventsReport {
    fn add(
        &mut self,
        group: &Group<'_>,
        args: &VerifyArgs,
        findings: &mut Findings,
    ) -> Result<(), Failure> {
        let events: Vec<Event<'_>> = group.events.iter().filter_map(|event| event.ok()).collect();
        let started = Instant::now();
        let mut verdicts = verify(&events, args).into_iter();
        self.seconds += started.elapsed().as_secs_f64();
        self.events += group.events.len() as u64;
        for (index, event) in (group.first..).zip(&group.events) {
            let verdict = event.map(|_| verdicts.next().expect("one for each readable event"));
            if let Some(refusal) = self.count(verdict) {
                let id = event.ok().map(|event| event.id);
                findings.add(|| refusal.finding(group.file, index, id))?;
            }
        }
        Ok(())
    }

    /// Counts the verdict on an event; returns why it is refused.
    fn count(
        &mut self,
        verdict: Result<Result<ControlChars, EventFault>, DecodeError>,
    ) -> Option<Refusal> {
        match verdict {
            Ok(Ok(form)) => {
                self.valid += 1;
                self.id_escaped += u64::from(form == ControlChars::Escaped);
                None
            }
            Ok(Err(fault)) => {
                self.invalid += 1;
                Some(Refusal::Invalid(fault))
            }
            Err(error) => {
                self.unreadable += 1;
                Some(Refusal::Unreadable(error))
            }
        }
    }

    fn to_text(&self) -> String {
        let Self { events, valid, invalid, unreadable, seconds, .. } = self;
        let escaped = match self.id_escaped {
            0 => String::new(),
            count => format!("    id: escaped  {count}\n"),
        };
        let per_s = *events as f64 / seconds.max(1e-9);
        format!(
            "events      {events} in {seconds:.3} s, {per_s:.0} per second\n  valid       {valid}\n\
             {escaped}  invalid     {invalid}\n  unreadable  {unreadable}\n"
        )
    }
}

fn verify(events: &[Event<'_>], args: &VerifyArgs) -> Vec<Result<ControlChars, EventFault>> {
    if !args.one_by_one {
        return verify_many_with(events, args.ids);
    }
    let mut scratch = Vec::new();
    events.iter().map(|event| event.verify_in(args.ids, &mut scratch)).collect()
}

/// Why an event is refused.
enum Refusal {
    Unreadable(DecodeError),
    Invalid(EventFault),
}

impl Refusal {
    fn finding(&self, file: &Path, index: u64, id: Option<[u8; 32]>) -> EventFinding {
        let message = match self {
            Self::Unreadable(error) => error.to_string(),
            Self::Invalid(fault) => fault.to_string(),
        };
        let file = file.display().to_string();
        EventFinding { file, index, id: id.map(|id| hex::encode(&id)), code: self.code(), message }
    }

    fn code(&self) -> &'static str {
        match self {
            Self::Unreadable(_) => "event/unreadable",
            Self::Invalid(EventFault::Id) => "event/id",
            Self::Invalid(EventFault::IdForm(_)) => "event/id-form",
            Self::Invalid(EventFault::Signature(_)) => "signature/wrong",
            Self::Invalid(_) => "event/refused",
        }
    }
}

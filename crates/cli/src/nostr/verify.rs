//! `wireproof nostr verify`: verifies the ids and signatures of events.

use std::path::Path;
use std::time::Instant;

use ::bench::nostr::{Group, InputError};
use serde::Serialize;
use wireproof::kernels::hex;
use wireproof::nostr::canonical::ControlChars;
use wireproof::nostr::{Event, EventFault, verify_many_with};

use super::VerifyArgs;
use crate::failure::Failure;
use crate::output::{Output, and_more};

pub(super) fn run(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let input = args.events.open()?;
    let mut report = EventsReport::default();
    let read = input.each_group(|group| {
        report.add(&group, args);
        Ok::<_, InputError>(())
    });
    output.document(&report, args.json, |report| report.to_text(args.all))?;
    read?;
    match report.invalid + report.unreadable {
        0 => Ok(()),
        refused => Err(Failure::refused(&args.events.file, format_args!("{refused} refused"))),
    }
}

/// The verdicts on all events, counted, and the refused events.
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
    findings: Vec<EventFinding>,
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

impl EventsReport {
    fn add(&mut self, group: &Group<'_>, args: &VerifyArgs) {
        let events: Vec<Event<'_>> = group.events.iter().filter_map(|event| event.ok()).collect();
        let started = Instant::now();
        let mut verdicts = verify(&events, args).into_iter();
        self.seconds += started.elapsed().as_secs_f64();
        self.events += group.events.len() as u64;
        for (at, event) in group.events.iter().enumerate() {
            let index = group.first + at as u64;
            let mut refuse = |id, code, message| {
                let file = Path::display(group.file).to_string();
                self.findings.push(EventFinding { file, index, id, code, message });
            };
            match event {
                Err(fault) => {
                    refuse(None, "event/unreadable", fault.to_string());
                    self.unreadable += 1;
                }
                Ok(event) => match verdicts.next().expect("one for each readable event") {
                    Ok(form) => {
                        self.valid += 1;
                        self.id_escaped += u64::from(form == ControlChars::Escaped);
                    }
                    Err(fault) => {
                        refuse(Some(hex::encode(&event.id)), code(&fault), fault.to_string());
                        self.invalid += 1;
                    }
                },
            }
        }
    }

    fn to_text(&self, all: bool) -> String {
        let shown = if all { self.findings.len() } else { SHOWN };
        let mut text = String::new();
        for EventFinding { file, index, id, message, .. } in self.findings.iter().take(shown) {
            let id = id.as_ref().map_or(String::new(), |id| format!(" {id}"));
            text += &format!("{file}: event {index}{id}: {message}\n");
        }
        text += &and_more(self.findings.len(), shown);
        let Self { events, valid, invalid, unreadable, seconds, .. } = self;
        let escaped = match self.id_escaped {
            0 => String::new(),
            count => format!("    id: escaped  {count}\n"),
        };
        let per_s = *events as f64 / seconds.max(1e-9);
        text + &format!(
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

fn code(fault: &EventFault) -> &'static str {
    match fault {
        EventFault::Id => "event/id",
        EventFault::IdForm(_) => "event/id-form",
        EventFault::Signature(_) => "signature/wrong",
        _ => "event/refused",
    }
}

/// Findings shown without `--all`.
const SHOWN: usize = 10;

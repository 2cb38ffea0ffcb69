//! `wireproof nostr verify`: are these events their authors'?

use std::io::{self, Write};
use std::path::Path;
use std::time::Instant;

use ::bench::nostr::{Group, InputError};
use serde::Serialize;
use wireproof::nostr::{Event, EventFault, verify_many};

use crate::args::nostr::NostrVerifyArgs;
use crate::failure::Failure;
use crate::hex;
use crate::output::Output;

pub(super) fn run(args: &NostrVerifyArgs, output: Output) -> Result<(), Failure> {
    let input = args.events.open()?;
    let mut report = Report::default();
    let read = input.each_group(|group| {
        report.judge(&group, args.one_by_one);
        Ok::<_, InputError>(())
    });
    if args.json {
        report.write_json(output.stdout())?;
    } else {
        report.write_text(args.all, output.stdout())?;
    }
    read?;
    match report.invalid + report.unreadable {
        0 => Ok(()),
        refused => {
            Err(Failure::Refused(format!("{}: {refused} refused", args.events.file.display())))
        }
    }
}

/// What came of the events so far.
#[derive(Debug, Default, Serialize)]
struct Report {
    events: u64,
    valid: u64,
    /// Events with a wrong id or signature.
    invalid: u64,
    /// What should be an event and is none.
    unreadable: u64,
    /// The time of hashing and verifying alone.
    seconds: f64,
    findings: Vec<KeyLookup>,
}

/// An event that is refused.
#[derive(Debug, Serialize)]
struct KeyLookup {
    file: String,
    /// Its place in the file, from 0.
    event: u64,
    id: Option<String>,
    reason: String,
}

impl Report {
    fn judge(&mut self, group: &Group<'_>, one_by_one: bool) {
        let events: Vec<Event<'_>> = group.events.iter().filter_map(|it| it.ok()).collect();
        let started = Instant::now();
        let mut verdicts = verdicts(&events, one_by_one).into_iter();
        self.seconds += started.elapsed().as_secs_f64();
        for (at, event) in group.events.iter().enumerate() {
            let place = (group.file, group.first + at as u64);
            match event {
                Err(fault) => self.find(place, None, fault.to_string()),
                Ok(event) => match verdicts.next().expect("one for each event that was read") {
                    Ok(()) => self.valid += 1,
                    Err(fault) => self.find(place, Some(event), fault.to_string()),
                },
            }
        }
        self.events += group.events.len() as u64;
    }

    fn find(&mut self, (file, at): (&Path, u64), event: Option<&Event<'_>>, reason: String) {
        *if event.is_some() { &mut self.invalid } else { &mut self.unreadable } += 1;
        let id = event.map(|event| hex::encode(&event.id));
        self.findings.push(KeyLookup { file: file.display().to_string(), event: at, id, reason });
    }

    fn write_json(&self, mut out: impl Write) -> io::Result<()> {
        serde_json::to_writer_pretty(&mut out, self)?;
        writeln!(out)
    }

    fn write_text(&self, all: bool, mut out: impl Write) -> io::Result<()> {
        let shown = if all { self.findings.len() } else { SHOWN.min(self.findings.len()) };
        for KeyLookup { file, event, id, reason } in &self.findings[..shown] {
            let id = id.as_ref().map_or(String::new(), |id| format!(" {id}"));
            writeln!(out, "{file}: event {event}{id}: {reason}")?;
        }
        if shown < self.findings.len() {
            let more = self.findings.len() - shown;
            writeln!(out, "… and {more} more: --all or --json shows them")?;
        }
        let Self { events, valid, invalid, unreadable, seconds, .. } = self;
        let per_s = *events as f64 / seconds.max(1e-9);
        writeln!(out, "events      {events} in {seconds:.3} s, {per_s:.0} a second")?;
        writeln!(out, "  valid       {valid}")?;
        writeln!(out, "  invalid     {invalid}")?;
        writeln!(out, "  unreadable  {unreadable}")
    }
}

fn verdicts(events: &[Event<'_>], one_by_one: bool) -> Vec<Result<(), EventFault>> {
    match one_by_one {
        true => events.iter().map(Event::verify).collect(),
        false => verify_many(events),
    }
}

/// Events that are shown unless all are asked for.
const SHOWN: usize = 10;

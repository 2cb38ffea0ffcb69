//! `wireproof nostr verify`: verifies the ids and signatures of events.

use std::fmt;
use std::io::{BufWriter, StdoutLock, Write};
use std::path::Path;
use std::time::Instant;

use ::bench::nostr::{Entry, Group, InputError, RawGroup};
use bumpalo::Bump;
use serde::Serialize;
use wireproof::kernels::hex;
use wireproof::nostr::canonical::ControlChars;
use wireproof::nostr::formats::Format;
use wireproof::nostr::{DecodeError, Event, EventFault, verify_many_with};

use super::seen::{MAX_IDS, SeenIds};
use super::{Emit, VerifyArgs};
use crate::batch;
use crate::failure::Failure;
use crate::findings::Findings;
use crate::in_order;
use crate::output::Output;

pub(super) fn run(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    match args.emit {
        None => verify(args, Findings::new(output, args.json, args.all), None),
        Some(_) => {
            let out = BufWriter::new(output.bytes());
            verify(args, Findings::text_to(anstream::stderr(), args.all), Some(out))
        }
    }
}

/// Judges groups of events on several threads, and takes the verdicts in order.
fn verify(
    args: &VerifyArgs,
    findings: Findings<impl Write>,
    emitted: Option<BufWriter<StdoutLock<'static>>>,
) -> Result<(), Failure> {
    let input = args.events.open()?;
    let started = Instant::now();
    let mut taker = Taker {
        report: EventsReport::default(),
        findings,
        emitted,
        seen: args.dedupe.then(|| SeenIds::new(MAX_IDS)),
    };
    let worker = || {
        let mut arena = Bump::new();
        move |group| judge(group, &mut arena, args)
    };
    let threads = batch::threads(args.jobs);
    let read = in_order::run(input.groups(), threads, worker, |group| taker.take(&group?));
    let Taker { mut report, findings, .. } = taker;
    report.seconds = started.elapsed().as_secs_f64();
    findings.finish(&report, EventsReport::to_text)?;
    read?;
    match report.invalid + report.unreadable {
        0 => Ok(()),
        _ if args.skip_invalid => Ok(()),
        refused => Err(Failure::Refused(format!("{}: {refused} refused", args.events.name()))),
    }
}

/// The verdicts on entries that were read together.
struct Judged<'i> {
    file: &'i Path,
    entries: Vec<JudgedEntry>,
    /// What may be emitted, one entry after the other.
    lines: Vec<u8>,
}

struct JudgedEntry {
    /// Its index in the file.
    index: u64,
    line: Option<u64>,
    id: Option<[u8; 32]>,
    verdict: Verdict,
    /// The end of its line in the lines of the group.
    end: usize,
}

/// The verdict on an entry.
enum Verdict {
    /// Excluded by the filter, and not verified.
    Filtered,
    Valid(ControlChars),
    Refused(Refusal),
}

fn judge<'i>(
    group: Result<(&'i Path, RawGroup), InputError>,
    arena: &mut Bump,
    args: &VerifyArgs,
) -> Result<Judged<'i>, Failure> {
    arena.reset();
    let (file, raw) = group?;
    let Group { first, entries, .. } = Group::decode(file, &raw, arena)?;
    let matching = entries.iter().map(|entry| entry.event.map(|it| (it, args.filter.matches(&it))));
    let matching: Vec<_> = matching.collect();
    let taken = matching.iter().flatten().filter(|(_, matches)| *matches);
    let events: Vec<Event<'_>> = taken.map(|(event, _)| *event).collect();
    let mut verdicts = verdicts(&events, args).into_iter();
    let (mut judged, mut lines) = (Vec::with_capacity(entries.len()), Vec::new());
    for ((index, entry), matching) in (first..).zip(&entries).zip(matching) {
        let verdict = match matching {
            Err(error) => Verdict::Refused(Refusal::Unreadable(error)),
            Ok((_, false)) => Verdict::Filtered,
            Ok((_, true)) => match verdicts.next().expect("one for each event that is taken") {
                Ok(form) => Verdict::Valid(form),
                Err(fault) => Verdict::Refused(Refusal::Invalid(fault)),
            },
        };
        if args.emit.is_some_and(|emit| emit.takes(&verdict)) {
            append_line(entry, &mut lines);
        }
        let id = entry.event.ok().map(|event| event.id);
        judged.push(JudgedEntry { index, line: entry.line, id, verdict, end: lines.len() });
    }
    Ok(Judged { file, entries: judged, lines })
}

fn verdicts(events: &[Event<'_>], args: &VerifyArgs) -> Vec<Result<ControlChars, EventFault>> {
    if !args.one_by_one {
        return verify_many_with(events, args.ids);
    }
    let mut scratch = Vec::new();
    events.iter().map(|event| event.verify_in(args.ids, &mut scratch)).collect()
}

/// Appends the JSON of an entry: what was read, or an event of another layout. A record that is no event has none.
fn append_line(entry: &Entry<'_>, lines: &mut Vec<u8>) {
    let start = lines.len();
    match (entry.json, entry.event) {
        (Some(json), _) => lines.extend_from_slice(json),
        (None, Ok(event)) if Format::Json.encode(&event, lines).is_ok() => {}
        (None, _) => return lines.truncate(start),
    }
    lines.push(b'\n');
}

impl Emit {
    fn takes(self, verdict: &Verdict) -> bool {
        match verdict {
            Verdict::Filtered => false,
            Verdict::Valid(_) => self != Self::Invalid,
            Verdict::Refused(_) => self != Self::Valid,
        }
    }
}

/// Takes verdicts in order: counts them, prints refusals, and emits events.
struct Taker<W: Write> {
    report: EventsReport,
    findings: Findings<W>,
    /// Standard output, if events are emitted.
    emitted: Option<BufWriter<StdoutLock<'static>>>,
    /// The ids of valid events, if repetitions are left out.
    seen: Option<SeenIds>,
}

impl<W: Write> Taker<W> {
    fn take(&mut self, group: &Judged<'_>) -> Result<(), Failure> {
        let mut start = 0;
        for entry in &group.entries {
            let line = &group.lines[std::mem::replace(&mut start, entry.end)..entry.end];
            let is_repeated = self.is_repeated(entry);
            self.report.count(&entry.verdict, is_repeated);
            if let Verdict::Refused(refusal) = &entry.verdict {
                self.findings.add(|| refusal.finding(group.file, entry))?;
            }
            if let (Some(emitted), false) = (&mut self.emitted, is_repeated) {
                emitted.write_all(line)?;
            }
        }
        // What is verified does not wait for the next group.
        Ok(self.emitted.as_mut().map_or(Ok(()), Write::flush)?)
    }

    /// Whether this is a valid event that came before. An invalid one has no id of its own.
    fn is_repeated(&mut self, entry: &JudgedEntry) -> bool {
        match (&mut self.seen, &entry.verdict, entry.id) {
            (Some(seen), Verdict::Valid(_), Some(id)) => !seen.insert(id),
            _ => false,
        }
    }
}

/// The verdicts on all events, counted.
#[derive(Debug, Default, Serialize)]
struct EventsReport {
    events: u64,
    /// Excluded by the filter, and not verified.
    filtered: u64,
    valid: u64,
    /// Valid events that came before.
    duplicates: u64,
    /// Valid events whose id is the hash of the form with escaped control characters.
    id_escaped: u64,
    /// Events with a wrong id or signature.
    invalid: u64,
    /// Entries that are no event.
    unreadable: u64,
    /// Time of the whole run.
    seconds: f64,
}

/// A refused event.
#[derive(Debug, Serialize)]
struct EventFinding {
    file: String,
    /// Index of the event in the file.
    index: u64,
    /// Its line, from 1, in JSON lines.
    line: Option<u64>,
    id: Option<String>,
    code: &'static str,
    message: String,
}

impl fmt::Display for EventFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, index, line, id, message, .. } = self;
        let line = line.map_or(String::new(), |line| format!(" in line {line}"));
        let id = id.as_ref().map_or(String::new(), |id| format!(" {id}"));
        write!(f, "{file}: event {index}{line}{id}: {message}")
    }
}

impl EventsReport {
    fn count(&mut self, verdict: &Verdict, is_repeated: bool) {
        self.events += 1;
        self.duplicates += u64::from(is_repeated);
        match verdict {
            Verdict::Filtered => self.filtered += 1,
            Verdict::Valid(form) => {
                self.valid += 1;
                self.id_escaped += u64::from(*form == ControlChars::Escaped);
            }
            Verdict::Refused(Refusal::Invalid(_)) => self.invalid += 1,
            Verdict::Refused(Refusal::Unreadable(_)) => self.unreadable += 1,
        }
    }

    fn to_text(&self) -> String {
        let Self { events, valid, invalid, unreadable, seconds, .. } = self;
        let per_s = *events as f64 / seconds.max(1e-9);
        let if_any = |name: &str, count: u64| match count {
            0 => String::new(),
            count => format!("{name}  {count}\n"),
        };
        let filtered = if_any("  filtered  ", self.filtered);
        let escaped = if_any("    id: escaped", self.id_escaped);
        let duplicates = if_any("    duplicates", self.duplicates);
        format!(
            "events      {events} in {seconds:.3} s, {per_s:.0} per second\n{filtered}  valid       {valid}\n\
             {escaped}{duplicates}  invalid     {invalid}\n  unreadable  {unreadable}\n"
        )
    }
}

/// Why an event is refused.
enum Refusal {
    Unreadable(DecodeError),
    Invalid(EventFault),
}

impl Refusal {
    fn finding(&self, file: &Path, entry: &JudgedEntry) -> EventFinding {
        let message = match self {
            Self::Unreadable(error) => error.to_string(),
            Self::Invalid(fault) => fault.to_string(),
        };
        let file = file.display().to_string();
        let JudgedEntry { index, line, id, .. } = *entry;
        let id = id.map(|id| hex::encode(&id));
        EventFinding { file, index, line, id, code: self.code(), message }
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

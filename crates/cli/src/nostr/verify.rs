//! `wireproof nostr verify`: verifies the ids and signatures of events.

use std::fmt;
use std::io::{BufWriter, IsTerminal, StdoutLock, Write, stdout};
use std::path::Path;
use std::time::Instant;

use bumpalo::Bump;
use codec::printable::Printable;
use kernels::hex;
use nostr::canonical::ControlChars;
use nostr::{Event, EventFault, Filter, verify_many_with};
use nostr_files::{Entry, EntryFault, FileFault, Group, InputError, RawGroup};
use nostr_follower::{EventRefusal, MAX_IDS, SeenIds};
use nostr_formats::Format;
use nostr_formats::container::Damage;
use serde::Serialize;

use super::failure::of_input;
use super::refusal::FileRefusal;
use super::{Emit, VerifyArgs};
use crate::batch;
use crate::controls::escape_controls;
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
    let filter = args.filter.to_filter();
    let worker = || {
        let (mut arena, filter) = (Bump::new(), &filter);
        move |group| judge(group, &mut arena, filter, args)
    };
    let threads = batch::threads(args.jobs);
    let read = in_order::run(input.groups(), threads, worker, |group| taker.take(group?));
    let Taker { mut report, findings, .. } = taker;
    report.seconds = started.elapsed().as_secs_f64();
    findings.finish(&report, EventsReport::to_text)?;
    read?;
    match report.invalid + report.unreadable + report.damaged {
        0 => Ok(()),
        _ if args.skip_invalid => Ok(()),
        refused => Err(Failure::Refused(format!("{}: {refused} refused", args.events.name()))),
    }
}

/// The verdicts on entries that were read together.
struct Judged<'i> {
    file: &'i Path,
    entries: Vec<JudgedEntry>,
    /// The damage of a container, in the place of entries.
    damage: Option<Damage>,
    /// The lines that may be emitted, one per entry.
    lines: Vec<u8>,
    /// Why nothing follows.
    end: Option<InputError>,
}

struct JudgedEntry {
    /// Its index in the file.
    index: u64,
    line: Option<u64>,
    key: Option<u64>,
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
    Refused(FileRefusal),
}

fn judge<'i>(
    group: Result<(&'i Path, RawGroup), InputError>,
    arena: &mut Bump,
    filter: &Filter,
    args: &VerifyArgs,
) -> Result<Judged<'i>, Failure> {
    arena.reset();
    let (file, raw) = match group {
        Ok(group) => group,
        Err(error) => return Ok(Judged::end(error)),
    };
    let Group { first, entries, damage, .. } =
        Group::decode(file, &raw, arena).map_err(of_input)?;
    let matching = entries.iter().map(|entry| entry.event.map(|it| (it, filter.matches(&it))));
    let matching: Vec<_> = matching.collect();
    let taken = matching.iter().flatten().filter(|(_, matches)| *matches);
    let events: Vec<Event<'_>> = taken.map(|(event, _)| *event).collect();
    let mut verdicts = verdicts(&events, args).into_iter();
    let is_terminal = args.emit.is_some() && stdout().is_terminal();
    let (mut judged, mut lines) = (Vec::with_capacity(entries.len()), Vec::new());
    for ((index, entry), matching) in (first..).zip(&entries).zip(matching) {
        let verdict = match matching {
            Err(fault) => Verdict::Refused(fault.into()),
            Ok((_, false)) => Verdict::Filtered,
            Ok((_, true)) => match verdicts.next().expect("one for each event that is taken") {
                Ok(form) => Verdict::Valid(form),
                Err(fault) => Verdict::Refused(FileRefusal::Event(EventRefusal::Invalid(fault))),
            },
        };
        if args.emit.is_some_and(|emit| emit.takes(&verdict)) {
            append_line(entry, is_terminal, &mut lines);
        }
        let id = entry.event.ok().map(|event| event.id);
        let line = entry.line;
        let key = entry.key;
        let end = lines.len();
        judged.push(JudgedEntry { index, line, key, id, verdict, end });
    }
    Ok(Judged { file, entries: judged, damage, lines, end: None })
}

impl Judged<'_> {
    /// The end of the input before its last event.
    fn end(error: InputError) -> Self {
        let file = Path::new("");
        let entries = Vec::new();
        let lines = Vec::new();
        Self { file, entries, damage: None, lines, end: Some(error) }
    }
}

fn verdicts(events: &[Event<'_>], args: &VerifyArgs) -> Vec<Result<ControlChars, EventFault>> {
    if !args.one_by_one {
        return verify_many_with(events, args.ids);
    }
    let mut scratch = Vec::new();
    events.iter().map(|event| event.verify_in(args.ids, &mut scratch)).collect()
}

/// Appends the JSON of an entry: the text that was read, or the JSON of an event in another layout. A record that is not
/// an event has none. Control characters of events are escaped; in other lines only at a terminal.
fn append_line(entry: &Entry<'_>, is_terminal: bool, lines: &mut Vec<u8>) {
    let start = lines.len();
    match (entry.json, entry.event) {
        (Some(json), Err(_)) if is_terminal => {
            let text = String::from_utf8_lossy(json);
            lines.extend_from_slice(Printable(&text).to_string().as_bytes());
        }
        (Some(json), _) => lines.extend_from_slice(json),
        (None, Ok(event)) if Format::Json.encode(&event, lines).is_ok() => {}
        (None, _) => return lines.truncate(start),
    }
    if !matches!(entry.event, Err(EntryFault::Unreadable(_))) {
        escape_controls(lines, start);
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
    fn take(&mut self, group: Judged<'_>) -> Result<(), Failure> {
        if let Some(end) = group.end {
            return self.end(end);
        }
        if let Some(damage) = group.damage {
            self.report.damaged += 1;
            self.findings.add(|| DamageFinding::new(group.file, damage))?;
        }
        let mut start = 0;
        for entry in &group.entries {
            let line = &group.lines[std::mem::replace(&mut start, entry.end)..entry.end];
            let is_repeated = self.is_repeated(entry);
            self.report.count(&entry.verdict, is_repeated);
            if let Verdict::Refused(refusal) = &entry.verdict {
                self.findings.add(|| EventFinding::new(refusal, group.file, entry))?;
            }
            if let (Some(emitted), false) = (&mut self.emitted, is_repeated) {
                emitted.write_all(line)?;
            }
        }
        // Verified events do not wait for the next group.
        Ok(self.emitted.as_mut().map_or(Ok(()), Write::flush)?)
    }

    /// Why nothing follows. Damage of a database is a finding too.
    fn end(&mut self, error: InputError) -> Result<(), Failure> {
        if let InputError::File { path, fault } = &error
            && let Some(code) = fault.code()
        {
            self.report.damaged += 1;
            let index = self.report.events;
            self.findings.add(|| EndFinding::new(path, index, code, fault))?;
        }
        Err(of_input(error))
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
    /// Entries that are not events.
    unreadable: u64,
    /// Parts of containers that are damaged, and records of databases whose tables do not agree.
    damaged: u64,
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
    /// Its key in a database.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<u64>,
    id: Option<String>,
    code: &'static str,
    message: String,
}

impl EventFinding {
    fn new(refusal: &FileRefusal, file: &Path, entry: &JudgedEntry) -> Self {
        let file = file.display().to_string();
        let JudgedEntry { index, line, key, id, .. } = *entry;
        let (id, message) = (id.map(|id| hex::encode(&id)), refusal.to_string());
        Self { file, index, line, key, id, code: refusal.code(), message }
    }
}

impl fmt::Display for EventFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, index, line, key, id, message, .. } = self;
        let line = line.map_or(String::new(), |line| format!(" in line {line}"));
        let key = key.map_or(String::new(), |key| format!(" at key {key}"));
        let id = id.as_ref().map_or(String::new(), |id| format!(" {id}"));
        write!(f, "{file}: event {index}{line}{key}{id}: {message}")
    }
}

/// A part of a container that is damaged.
#[derive(Debug, Serialize)]
struct DamageFinding {
    file: String,
    /// Number of the first event that is missing, or would be.
    index: u64,
    line: Option<u64>,
    id: Option<String>,
    code: &'static str,
    /// Bytes from the start of the file to the part.
    offset: u64,
    /// Length of the part in bytes.
    bytes: u64,
    message: String,
}

impl DamageFinding {
    fn new(file: &Path, damage: Damage) -> Self {
        let file = file.display().to_string();
        let code = damage.fault.code();
        let message = damage.to_string();
        let Damage { offset, len: bytes, event: index, .. } = damage;
        Self { file, index, line: None, id: None, code, offset, bytes, message }
    }
}

impl fmt::Display for DamageFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, message, .. } = self;
        write!(f, "{file}: {message}")
    }
}

/// The fault that ends the reading of a database.
#[derive(Debug, Serialize)]
struct EndFinding {
    file: String,
    /// Number of events before.
    index: u64,
    line: Option<u64>,
    id: Option<String>,
    code: &'static str,
    message: String,
}

impl EndFinding {
    fn new(file: &Path, index: u64, code: &'static str, fault: &FileFault) -> Self {
        let (file, message) = (file.display().to_string(), fault.to_string());
        Self { file, index, line: None, id: None, code, message }
    }
}

impl fmt::Display for EndFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { file, message, .. } = self;
        write!(f, "{file}: {message}")
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
            Verdict::Refused(FileRefusal::Event(EventRefusal::Invalid(_))) => self.invalid += 1,
            Verdict::Refused(FileRefusal::Database(_)) => self.damaged += 1,
            Verdict::Refused(_) => self.unreadable += 1,
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
        let damaged = if_any("  damaged   ", self.damaged);
        format!(
            "events      {events} in {seconds:.3} s, {per_s:.0} per second\n{filtered}  valid       {valid}\n\
             {escaped}{duplicates}  invalid     {invalid}\n  unreadable  {unreadable}\n{damaged}"
        )
    }
}

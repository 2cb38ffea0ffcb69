//! `wireproof nostr get`: events by number or id.

use std::fs::File;
use std::io::{self, Read, Write};

use bumpalo::Bump;
use kernels::hex;
use nostr::{DecodeError, Limits, OwnedEvent};
use nostr_files::{FileFault, InputError, Layout, OutputError};
use nostr_formats::Format;
use nostr_formats::container::{self, Damage, IndexedReader, LookupError};

use super::GetArgs;
use super::failure::of_input;
use crate::controls::escape_controls;
use crate::failure::Failure;
use crate::{files, standard_streams};

pub(super) fn run(args: &GetArgs) -> Result<(), Failure> {
    let mut wanted = Wanted::new(args);
    if wanted.numbers.is_empty() && wanted.ids.is_empty() {
        return Err(Failure::Usage("give the number of an event, or --id".to_owned()));
    }
    let found = match indexed(args)? {
        Some(mut reader) => look_up(&mut reader, &mut wanted, args)?,
        None => scan(&mut wanted, args)?,
    };
    write(&found, args.to.single())?;
    match wanted.missing() {
        None => Ok(()),
        Some(missing) => Err(Failure::refused(&args.file, missing)),
    }
}

/// The events that are asked for and not found yet.
struct Wanted {
    // Ascending.
    numbers: Vec<u64>,
    ids: Vec<[u8; 32]>,
    /// The first damage of the file, which may have had them.
    damage: Option<Damage>,
}

impl Wanted {
    fn new(args: &GetArgs) -> Self {
        let mut numbers = args.numbers.clone();
        numbers.sort_unstable();
        numbers.dedup();
        Self { numbers, ids: args.id.clone(), damage: None }
    }

    /// Whether an event is one of them; it is found then.
    fn take(&mut self, number: u64, id: Option<[u8; 32]>) -> bool {
        let (numbers, ids) = (self.numbers.len(), self.ids.len());
        self.numbers.retain(|other| *other != number);
        self.ids.retain(|other| Some(*other) != id);
        (self.numbers.len(), self.ids.len()) != (numbers, ids)
    }

    /// The missing event, for a message.
    fn missing(&self) -> Option<String> {
        let missing = match (self.numbers.first(), self.ids.first()) {
            (Some(number), _) => format!("no event {number}"),
            (None, Some(id)) => format!("no event with the id {}", hex::encode(id)),
            (None, None) => return None,
        };
        let damage = self.damage.map(|damage| format!("; {damage}")).unwrap_or_default();
        Some(missing + &damage)
    }
}

/// The file by its index, if it is a container that has one and only numbers are asked for.
fn indexed(args: &GetArgs) -> Result<Option<IndexedReader<File>>, Failure> {
    let is_container = matches!(args.from, None | Some(Layout::Container(_)));
    if !args.id.is_empty() || !is_container || files::is_standard_stream(&args.file) {
        return Ok(None);
    }
    let open = || {
        let file = File::open(&args.file)?;
        if !file.metadata()?.is_file() {
            return Ok(None);
        }
        let mut start = Vec::new();
        (&file).take(START_BYTES).read_to_end(&mut start)?;
        Ok(container::is_container(&start).then_some(file))
    };
    let Some(file) = open().map_err(Failure::file(&args.file))? else { return Ok(None) };
    match IndexedReader::open(file) {
        Ok(reader) => Ok(Some(reader)),
        // Intact events are found without an index.
        Err(LookupError::Damaged(_)) => Ok(None),
        Err(LookupError::Io(error)) => Err(Failure::file(&args.file)(error)),
        Err(error) => Err(Failure::refused(&args.file, error)),
    }
}

fn look_up(
    reader: &mut IndexedReader<File>,
    wanted: &mut Wanted,
    args: &GetArgs,
) -> Result<Vec<OwnedEvent>, Failure> {
    let (mut found, mut arena) = (Vec::new(), Bump::new());
    for number in wanted.numbers.clone() {
        let stored = match reader.event(number) {
            Ok(Some(stored)) => stored,
            Ok(None) => continue,
            Err(LookupError::Io(error)) => return Err(Failure::file(&args.file)(error)),
            Err(LookupError::Damaged(damage)) => {
                wanted.damage.get_or_insert(damage);
                continue;
            }
            Err(error) => return Err(Failure::refused(&args.file, error)),
        };
        arena.reset();
        let event = stored.format.decode(&stored.bytes, &arena, &Limits::default());
        let fault = |fault: DecodeError| FileFault::Event { at: number, fault: fault.into() };
        found.push(event.map_err(|error| Failure::refused(&args.file, fault(error)))?.to_owned());
        wanted.take(number, None);
    }
    Ok(found)
}

/// Reads the file up to the last event that is asked for.
fn scan(wanted: &mut Wanted, args: &GetArgs) -> Result<Vec<OwnedEvent>, Failure> {
    if files::is_standard_stream(&args.file) {
        standard_streams::stdin()?;
    }
    let mut found = Vec::new();
    let input = super::input(&[&args.file], args.from, None).map_err(of_input)?;
    let scanned = input.each_group(|group| {
        if let Some(damage) = group.damage {
            wanted.damage.get_or_insert(damage);
        }
        for (number, entry) in (group.first..).zip(&group.entries) {
            let id = entry.event.ok().map(|event| event.id);
            if !wanted.take(number, id) {
                continue;
            }
            let fault = |fault| InputError::File {
                path: args.file.clone(),
                fault: FileFault::Event { at: number, fault },
            };
            found.push(entry.event.map_err(fault)?.to_owned());
        }
        if wanted.numbers.is_empty() && wanted.ids.is_empty() {
            Err(Scan::Complete)
        } else {
            Ok(())
        }
    });
    match scanned {
        Ok(()) | Err(Scan::Complete) => Ok(found),
        Err(Scan::Failed(failure)) => Err(failure),
    }
}

/// Why a scan ends before the file does.
enum Scan {
    Complete,
    Failed(Failure),
}

impl From<InputError> for Scan {
    fn from(error: InputError) -> Self {
        Self::Failed(of_input(error))
    }
}

fn write(events: &[OwnedEvent], layout: Layout) -> Result<(), Failure> {
    if events.is_empty() {
        return Ok(());
    }
    let arena = Bump::new();
    let events: Vec<_> = events.iter().map(|event| event.borrow_in(&arena)).collect();
    let written = layout.write(&events, Vec::new());
    match written {
        Ok(mut bytes) => {
            if matches!(layout, Layout::Lines | Layout::Single(Format::Json)) {
                escape_controls(&mut bytes, 0);
            }
            let mut out = io::stdout().lock();
            out.write_all(&bytes)?;
            Ok(out.flush()?)
        }
        Err(OutputError::Io(error)) => Err(error.into()),
        Err(error) => Err(Failure::Refused(error.to_string())),
    }
}

/// Bytes that tell a container from other files.
const START_BYTES: u64 = 8;

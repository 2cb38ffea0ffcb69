//! `wireproof nostr convert`: writes events in another format.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use bumpalo::Bump;
use nostr::Event;
use nostr_files::{Group, Input, InputError, Layout, Output as EventsFile, OutputError};
use nostr_formats::Format;

#[cfg(feature = "nostr-lmdb")]
use super::database;
use super::failure::of_input;
use super::{ConvertArgs, Target};
use crate::controls::EscapedJson;
use crate::failure::Failure;
use crate::files;
use crate::log::{self, Level};
#[cfg(not(feature = "nostr-lmdb"))]
use program::programs::WIREPROOF;

pub(super) fn run(args: &ConvertArgs) -> Result<(), Failure> {
    match (args.to, args.file()) {
        (Target::File(layout), _) => convert_to_file(args, args.layout(layout)),
        #[cfg(feature = "nostr-lmdb")]
        (Target::StrfryDatabase, Some(path)) => database::run(args, path),
        #[cfg(not(feature = "nostr-lmdb"))]
        (Target::StrfryDatabase, Some(_)) => {
            Err(Failure::Usage(WIREPROOF.missing_feature("--to strfry-lmdb", "nostr-lmdb")))
        }
        (Target::StrfryDatabase, None) => {
            Err(Failure::Usage("--to strfry-lmdb writes a folder: name it with -o".to_owned()))
        }
    }
}

fn convert_to_file(args: &ConvertArgs, layout: Layout) -> Result<(), Failure> {
    let input = args.events.open()?;
    let failed = |error: ConvertError| error.into_failure(args);
    match args.file() {
        // Bytes go to the raw stream: one that strips styles takes text only.
        None if is_json(layout) => {
            let out = EscapedJson::new(io::stdout().lock());
            let out = convert(&input, args, layout, BufWriter::new(out)).map_err(failed)?;
            Ok({ out }.flush()?)
        }
        None => {
            let out = BufWriter::new(io::stdout().lock());
            Ok(convert(&input, args, layout, out).map_err(failed)?.flush()?)
        }
        Some(path) => {
            let file = BufWriter::new(files::create_sibling(path)?);
            let out = convert(&input, args, layout, file).map_err(failed)?;
            let file = out.into_inner().map_err(|error| Failure::file(path)(error.into_error()))?;
            files::persist(file, path)
        }
    }
}

/// Whether a layout is text with the text of strangers, which a terminal may obey.
fn is_json(layout: Layout) -> bool {
    matches!(layout, Layout::Lines | Layout::Batch(Format::Json) | Layout::Single(Format::Json))
}

impl ConvertArgs {
    /// The file to write, unless it is standard output.
    fn file(&self) -> Option<&Path> {
        self.out.as_deref().filter(|path| !files::is_standard_stream(path))
    }

    fn layout(&self, layout: Layout) -> Layout {
        match (layout, self.format) {
            (Layout::Container(_), Some(format)) => Layout::Container(format),
            (layout, _) if self.events.single => layout.single(),
            (layout, _) => layout,
        }
    }

    /// The events of a group; none of a part that is damaged, if such parts are skipped.
    pub(super) fn events_of<'a>(&self, group: Group<'a>) -> Result<Vec<Event<'a>>, ConvertError> {
        match group.damage {
            Some(damage) if self.skip_damaged => {
                let name = files::name(group.file);
                log::print(Level::Warning, &format!("{name}: {damage}"))
                    .map_err(OutputError::Io)?;
                Ok(Vec::new())
            }
            _ => Ok(group.into_events()?),
        }
    }
}

fn convert<W: Write>(
    input: &Input,
    args: &ConvertArgs,
    layout: Layout,
    out: W,
) -> Result<W, ConvertError> {
    if let Layout::Batch(_) = layout {
        let arena = Bump::new();
        let events = input.load_with(&arena, |group| args.events_of(group))?;
        return Ok(layout.write(&events, out)?);
    }
    let mut file = EventsFile::new(layout, out);
    input.each_group(|group| {
        for event in args.events_of(group)? {
            file.write(&event)?;
        }
        Ok::<_, ConvertError>(())
    })?;
    Ok(file.finish()?)
}

/// A failed read or write.
pub(super) enum ConvertError {
    Input(InputError),
    Output(OutputError),
}

impl From<InputError> for ConvertError {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

impl From<OutputError> for ConvertError {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

impl ConvertError {
    pub(super) fn into_failure(self, args: &ConvertArgs) -> Failure {
        match (self, args.file()) {
            (Self::Input(error), _) => of_input(error),
            (Self::Output(OutputError::Io(error)), None) => error.into(),
            (Self::Output(OutputError::Io(error)), Some(path)) => Failure::file(path)(error),
            (Self::Output(error), _) => {
                Failure::Refused(format!("{}: {error}", args.events.name()))
            }
        }
    }
}

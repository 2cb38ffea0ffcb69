//! `wireproof nostr convert`: writes events in another format.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use ::bench::nostr::{Input, InputError, Layout, Output as EventsFile, OutputError};
use bumpalo::Bump;

use super::ConvertArgs;
use crate::failure::Failure;
use crate::files;

pub(super) fn run(args: &ConvertArgs) -> Result<(), Failure> {
    let input = args.events.open()?;
    let failed = |error: ConvertError| error.into_failure(args);
    match args.file() {
        // Bytes go to the raw stream: one that strips styles takes text only.
        None => {
            let out = BufWriter::new(io::stdout().lock());
            Ok(convert(&input, args.to, out).map_err(failed)?.flush()?)
        }
        Some(path) => {
            let file = BufWriter::new(files::create_sibling(path)?);
            let out = convert(&input, args.to, file).map_err(failed)?;
            let file = out.into_inner().map_err(|error| Failure::file(path)(error.into_error()))?;
            files::persist(file, path)
        }
    }
}

impl ConvertArgs {
    /// The file to write, unless it is standard output.
    fn file(&self) -> Option<&Path> {
        self.out.as_deref().filter(|path| !files::is_standard_stream(path))
    }
}

fn convert<W: Write>(input: &Input, to: Layout, out: W) -> Result<W, ConvertError> {
    let mut file = match to {
        Layout::Lines => EventsFile::lines(out),
        Layout::Records => EventsFile::records(out),
        Layout::Batch(_) => {
            let arena = Bump::new();
            return Ok(to.write(&input.load(&arena)?, out)?);
        }
    };
    input.each_group(|group| {
        for event in group.into_events()? {
            file.write(&event)?;
        }
        Ok::<_, ConvertError>(())
    })?;
    Ok(file.finish()?)
}

/// A failed read or write.
enum ConvertError {
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
    fn into_failure(self, args: &ConvertArgs) -> Failure {
        match (self, args.file()) {
            (Self::Input(error), _) => error.into(),
            (Self::Output(OutputError::Io(error)), None) => error.into(),
            (Self::Output(OutputError::Io(error)), Some(path)) => Failure::file(path)(error),
            (Self::Output(error), _) => {
                Failure::Refused(format!("{}: {error}", args.events.name()))
            }
        }
    }
}

//! `wireproof nostr convert`: the same events in another format.

use std::io::{self, BufWriter, Write};
use std::path::Path;

use ::bench::nostr::{Input, InputError, Layout, Output as EventsFile, OutputError};
use bumpalo::Bump;
use tempfile::NamedTempFile;

use crate::args::nostr::ConvertArgs;
use crate::failure::Failure;
use crate::output::Output;

pub(super) fn run(args: &ConvertArgs, _: Output) -> Result<(), Failure> {
    let input = args.events.open()?;
    let told = |fault: Fault| fault.told(args);
    match &args.out {
        // Bytes, not text: no stream that takes styles out.
        None => {
            let out = BufWriter::new(io::stdout().lock());
            write(&input, args.to, out).map_err(told)?.flush()?;
            Ok(())
        }
        Some(path) => {
            let file = beside(path)?;
            let out = write(&input, args.to, BufWriter::new(file)).map_err(told)?;
            let file = out.into_inner().map_err(|error| Failure::file(path)(error.into_error()))?;
            file.persist(path).map_err(|error| Failure::file(path)(error.error))?;
            Ok(())
        }
    }
}

/// A file in the same folder, so that it can take the place of the other at once.
fn beside(path: &Path) -> Result<NamedTempFile, Failure> {
    let dir = match path.parent() {
        Some(dir) if dir != Path::new("") => dir,
        _ => Path::new("."),
    };
    NamedTempFile::new_in(dir).map_err(Failure::file(dir))
}

fn write<W: Write>(input: &Input, to: Layout, out: W) -> Result<W, Fault> {
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
        Ok::<_, Fault>(())
    })?;
    Ok(file.finish()?)
}

/// Why events did not become a file.
enum Fault {
    Input(InputError),
    Output(OutputError),
}

impl From<InputError> for Fault {
    fn from(error: InputError) -> Self {
        Self::Input(error)
    }
}

impl From<OutputError> for Fault {
    fn from(error: OutputError) -> Self {
        Self::Output(error)
    }
}

impl Fault {
    fn told(self, args: &ConvertArgs) -> Failure {
        match (self, &args.out) {
            (Self::Input(error), _) => error.into(),
            (Self::Output(OutputError::Io(error)), None) => error.into(),
            (Self::Output(OutputError::Io(error)), Some(path)) => Failure::file(path)(error),
            (Self::Output(error), _) => {
                Failure::Refused(format!("{}: {error}", args.events.file.display()))
            }
        }
    }
}

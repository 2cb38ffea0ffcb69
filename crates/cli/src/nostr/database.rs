//! `wireproof nostr convert --to strfry-lmdb`: writes a database of strfry.

use std::fs;
use std::io;
use std::path::Path;

use kernels::hex;
use nostr_files::{InputError, OutputError};
use nostr_lmdb::{Counts, DatabaseError, StrfryWriter};

use super::ConvertArgs;
use super::convert::ConvertError;
use crate::failure::Failure;
use crate::files;
use crate::log::{self, Level};

/// Writes the events into a new folder next to `path`, which gets this name when it is complete.
pub(super) fn run(args: &ConvertArgs, path: &Path) -> Result<(), Failure> {
    if !is_free(path).map_err(Failure::file(path))? {
        return Err(database_failure(path)(DatabaseError::Exists));
    }
    let folder = files::create_sibling_folder(path)?;
    let writer = StrfryWriter::create(folder.path()).map_err(database_failure(path))?;
    let (counts, unheld) = write(args, path, writer)?;
    // On Unix it takes the place of an empty folder too.
    fs::rename(folder.path(), path).map_err(Failure::file(path))?;
    let _ = folder.keep();
    let Counts { stored, duplicates, replaced, deleted, ephemeral, .. } = counts;
    let name = files::name(path);
    log::print(
        Level::Info,
        &format!(
            "{name}: stored {stored}, duplicates {duplicates}, replaced {replaced}, deleted {deleted}, \
             ephemeral {ephemeral}, left out {unheld}"
        ),
    )?;
    match unheld {
        0 => Ok(()),
        _ => Err(Failure::Refused(format!(
            "{name}: {unheld} events left out, which strfry cannot hold ({UNHELD_CODE})"
        ))),
    }
}

/// The code of an event that the database cannot hold.
const UNHELD_CODE: &str = "event/unencodable";

/// Whether nothing is at a path but an empty folder.
fn is_free(path: &Path) -> io::Result<bool> {
    match fs::read_dir(path) {
        Ok(mut entries) => Ok(entries.next().is_none()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => Ok(false),
        Err(error) => Err(error),
    }
}

/// Counts of stored events, and the number of events that the database cannot hold, named in warnings.
fn write(
    args: &ConvertArgs,
    path: &Path,
    mut writer: StrfryWriter,
) -> Result<(Counts, u64), Failure> {
    let mut unheld = 0;
    let written = args.events.open()?.each_group(|group| {
        let (file, first) = (files::name(group.file), group.first);
        let events = args.events_of(group).map_err(Stop::Convert)?;
        let outcomes = writer.write(&events).map_err(Stop::Database)?;
        for ((at, event), outcome) in (first..).zip(&events).zip(outcomes) {
            let Err(fault) = outcome else { continue };
            let fault = OutputError::Event { at, id: hex::encode(&event.id), fault };
            log::print(Level::Warning, &format!("{file}: {fault} ({UNHELD_CODE})"))
                .map_err(|error| Stop::Convert(OutputError::Io(error).into()))?;
            unheld += 1;
        }
        Ok(())
    });
    written.map_err(|stop| match stop {
        Stop::Convert(error) => error.into_failure(args),
        Stop::Database(error) => database_failure(path)(error),
    })?;
    Ok((writer.finish().map_err(database_failure(path))?, unheld))
}

/// Why the writing ends before the events do.
enum Stop {
    Convert(ConvertError),
    Database(DatabaseError),
}

impl From<InputError> for Stop {
    fn from(error: InputError) -> Self {
        Self::Convert(error.into())
    }
}

/// A database that cannot be written is a failure of this machine.
fn database_failure(path: &Path) -> impl FnOnce(DatabaseError) -> Failure {
    let path = path.to_owned();
    move |error| Failure::Local(format!("{}: {error}", path.display()))
}

//! `wireproof nostr`: events in files judged, converted, measured.

mod analyze;
mod convert;
mod recommend;
mod sizes;
mod verify;

use ::bench::nostr::{Input, InputError};

use crate::args::nostr::{EventsArgs, NostrCommand};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(command: &NostrCommand, output: Output) -> Result<(), Failure> {
    match command {
        NostrCommand::Verify(args) => verify::run(args, output),
        NostrCommand::Convert(args) => convert::run(args, output),
        NostrCommand::Sizes(args) => sizes::run(args, output),
        NostrCommand::Analyze(args) => analyze::run(args, output),
        NostrCommand::Recommend(args) => recommend::run(args, output),
    }
}

impl EventsArgs {
    fn open(&self) -> Result<Input, Failure> {
        Ok(Input::open(&self.file, self.from, self.limit)?)
    }
}

impl From<InputError> for Failure {
    fn from(error: InputError) -> Self {
        match error.is_local() {
            true => Self::Local(error.to_string()),
            false => Self::Refused(format!("{error}{}", advice(&error))),
        }
    }
}

/// What to do about a file that was not what its name says.
fn advice(error: &InputError) -> &'static str {
    match error {
        InputError::EmptyFolder(_) => "",
        _ => " (--from says how events stand in a file)",
    }
}

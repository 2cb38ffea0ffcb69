//! `wireproof inspect`: what is in these bytes, or which rule do they break?

mod detect;
mod json;
mod refusal;
mod text;
mod tree;

use std::fs;
use std::io::{self, Read};
use std::path::Path;

use crate::args::{InspectArgs, Kind};
use crate::failure::Failure;
use crate::output::Output;
use refusal::{Refusal, Stop};

pub(crate) fn run(args: &InspectArgs, output: Output) -> Result<(), Failure> {
    let (name, bytes) = read(&args.file)?;
    let kind = args.kind.unwrap_or_else(|| detect::kind(&bytes));
    let shown = if args.json {
        let limit = limit(args.limit.unwrap_or(0));
        json::write(kind, &bytes, limit, &mut output.stdout())
    } else {
        let limit = limit(args.limit.unwrap_or(SHOWN));
        text::write(kind, &bytes, limit, &mut io::BufWriter::new(output.stdout()))
    };
    shown.map_err(|stop| match stop {
        Stop::Output(error) => error.into(),
        Stop::Refused(refusal) => {
            Failure::Refused(tell(&name, kind, args.kind.is_none(), &refusal, &bytes))
        }
    })
}

/// The bytes, and what to call them.
fn read(file: &Path) -> Result<(String, Vec<u8>), Failure> {
    if file == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(("standard input".to_owned(), bytes));
    }
    let bytes = fs::read(file).map_err(Failure::file(file))?;
    Ok((file.display().to_string(), bytes))
}

/// One line of what and where, the bytes there, and what else could be tried.
fn tell(name: &str, kind: Kind, is_guess: bool, refusal: &Refusal, bytes: &[u8]) -> String {
    let mut text = format!("{name}: {refusal}\n{}", refusal.bytes_around(bytes));
    if is_guess {
        text += &format!("\nRead as {}; --as KIND reads it as something else.", detect::name(kind));
    }
    text
}

fn limit(limit: usize) -> usize {
    if limit == 0 { usize::MAX } else { limit }
}

/// Frames or blocks that are shown unless the user says how many.
const SHOWN: usize = 10;

//! `wireproof repo export`: the same repository in another form.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use serde_json::value::RawValue;
use wireproof::atproto::repo::{ExportError, Repository};

use super::{open, read, refused};
use crate::args::repo::{ExportArgs, ExportFormat};
use crate::failure::Failure;
use crate::output::Output;

pub(super) fn run(args: &ExportArgs, output: Output) -> Result<(), Failure> {
    let bytes = open(&args.file)?;
    let repository = read(&args.file, &bytes)?;
    if args.out == Path::new("-") {
        return write(args, &repository, output.stdout()).map_err(|stop| stop.on_stdout());
    }
    let file = File::create(&args.out).map_err(Failure::file(&args.out))?;
    write(args, &repository, file).map_err(|stop| stop.in_file(&args.out))
}

/// Why writing ended.
enum Stop {
    Io(io::Error),
    Other(Failure),
}

impl Stop {
    fn on_stdout(self) -> Failure {
        match self {
            Self::Io(error) => error.into(),
            Self::Other(failure) => failure,
        }
    }

    fn in_file(self, file: &Path) -> Failure {
        match self {
            Self::Io(error) => Failure::file(file)(error),
            Self::Other(failure) => failure,
        }
    }
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn write(args: &ExportArgs, repository: &Repository<'_>, out: impl Write) -> Result<(), Stop> {
    let out = BufWriter::new(out);
    match args.format {
        ExportFormat::Car => match repository.export(out) {
            Ok(mut out) => Ok(out.flush()?),
            Err(ExportError::Io(error)) => Err(Stop::Io(error)),
            Err(ExportError::Repo(error)) => Err(Stop::Other(refused(&args.file, error))),
        },
        ExportFormat::Ndjson => lines(args, repository, out),
    }
}

#[derive(Serialize)]
struct Line<'a> {
    path: &'a str,
    cid: String,
    value: Box<RawValue>,
}

fn lines(args: &ExportArgs, repository: &Repository<'_>, mut out: impl Write) -> Result<(), Stop> {
    for record in repository.records() {
        let record = record.map_err(|error| Stop::Other(refused(&args.file, error)))?;
        let no_json = |error| {
            let text = format!("{}: {}: {error}", args.file.display(), record.path);
            Stop::Other(Failure::Refused(text))
        };
        let json = record.to_json().map_err(no_json)?;
        let value = RawValue::from_string(json).map_err(io::Error::from)?;
        let line = Line { path: &record.path, cid: record.cid.to_string(), value };
        serde_json::to_writer(&mut out, &line).map_err(io::Error::from)?;
        writeln!(out)?;
    }
    Ok(out.flush()?)
}

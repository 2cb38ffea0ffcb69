//! `wireproof repo`: what is in this repository?

mod diff;
mod export;
mod stats;

use std::io::{BufWriter, Write};
use std::path::Path;

use mapping::MappedFile;
use serde::Serialize;
use wireproof::atproto::repo::{Options, Record, RepoError, Repository};
use wireproof::atproto::syntax::AtUri;

use crate::args::repo::{GetArgs, LsArgs, RepoCommand};
use crate::failure::Failure;
use crate::output::Output;

pub(crate) fn run(command: &RepoCommand, output: Output) -> Result<(), Failure> {
    match command {
        RepoCommand::Ls(args) => ls(args, output),
        RepoCommand::Get(args) => get(args, output),
        RepoCommand::Diff(args) => diff::run(args, output),
        RepoCommand::Export(args) => export::run(args, output),
        RepoCommand::Stats(args) => stats::run(args, output),
    }
}

/// The repository in the bytes of `file`, whose hashes hold.
fn read<'a>(file: &Path, bytes: &'a MappedFile) -> Result<Repository<'a>, Failure> {
    Repository::read(bytes, &Options::default()).map_err(|error| refused(file, error))
}

fn open(file: &Path) -> Result<MappedFile, Failure> {
    MappedFile::open(file).map_err(Failure::file(file))
}

fn refused(file: &Path, error: RepoError) -> Failure {
    Failure::Refused(format!("{}: {error}", file.display()))
}

/// A line of `ls --json`.
#[derive(Serialize)]
struct Listed<'a> {
    path: &'a str,
    cid: String,
    bytes: usize,
}

fn ls(args: &LsArgs, output: Output) -> Result<(), Failure> {
    let bytes = open(&args.file)?;
    let repository = read(&args.file, &bytes)?;
    let mut out = BufWriter::new(output.stdout());
    for record in repository.records() {
        let record = record.map_err(|error| refused(&args.file, error))?;
        if args.collection.as_ref().is_some_and(|wanted| *wanted != collection(&record.path)) {
            continue;
        }
        if args.json {
            let Record { path, cid, block } = &record;
            let listed = Listed { path, cid: cid.to_string(), bytes: block.len() };
            serde_json::to_writer(&mut out, &listed).map_err(std::io::Error::from)?;
            writeln!(out)?;
        } else {
            writeln!(out, "{}\t{}", record.path, record.cid)?;
        }
    }
    Ok(out.flush()?)
}

/// The part of a path before the slash.
fn collection(path: &str) -> &str {
    path.split_once('/').map_or(path, |(collection, _)| collection)
}

fn get(args: &GetArgs, output: Output) -> Result<(), Failure> {
    let bytes = open(&args.file)?;
    let repository = read(&args.file, &bytes)?;
    let path = path_in(&args.path, &repository)?;
    let mut found = None;
    // To the end, for only then is the tree known to be sound.
    for record in repository.records() {
        let record = record.map_err(|error| refused(&args.file, error))?;
        if record.path == path {
            found = Some(record);
        }
    }
    let Some(record) = found else {
        let message = format!("{}: there is no record at {path}", args.file.display());
        return Err(Failure::Refused(message));
    };
    let mut out = output.stdout();
    if args.raw {
        return Ok(out.write_all(record.block)?);
    }
    let told = |error| Failure::Refused(format!("{}: {path}: {error}", args.file.display()));
    Ok(writeln!(out, "{}", record.to_json().map_err(told)?)?)
}

/// The path that was asked for, alone or in the URI of a record of this repository.
fn path_in<'a>(asked: &'a str, repository: &Repository<'_>) -> Result<&'a str, Failure> {
    if !asked.starts_with("at://") {
        return Ok(asked);
    }
    let uri = AtUri::parse(asked).map_err(|error| Failure::Usage(format!("{asked}: {error}")))?;
    let authority = uri.authority().as_str();
    if authority.starts_with("did:") && authority != repository.commit().did {
        let owner = repository.commit().did;
        return Err(Failure::Usage(format!("{asked}: the repository is of {owner}")));
    }
    let path = asked["at://".len()..].split_once('/').map(|(_, path)| path);
    match (uri.collection(), uri.record_key(), path) {
        (Some(_), Some(_), Some(path)) => Ok(path),
        _ => Err(Failure::Usage(format!("{asked}: not the URI of a record"))),
    }
}

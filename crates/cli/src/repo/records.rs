//! `wireproof repo ls`, `get`, `diff` and `export`: the records of repositories.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use atproto::mst::Change;
use atproto::repo::{ExportError, Record, Repository};
use atproto::syntax::{AtUri, CollectionPatternBuf};
use codec::AnyCid;
use codec::printable::{Printable, escape_json};
use serde::Serialize;
use verify::InvalidRecord;

use super::part::Part;
use super::source::RepositoryName;
use super::{DiffArgs, ExportArgs, ExportFormat, GetArgs, LsArgs, read, records};
use crate::batch::cores;
use crate::failure::Failure;
use crate::files;
use crate::json::{RecordContent, RecordPath};
use crate::output::{Output, write_json_line};

pub(super) fn ls(args: &LsArgs, output: Output) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct RecordLine<'a> {
        #[serde(flatten)]
        path: RecordPath<&'a str>,
        cid: String,
        bytes: usize,
    }
    let named = RepositoryName::parse(&args.repository);
    let collections = named.collections(&args.collections)?;
    let open = named.open(&collections, &args.downloaded)?;
    let repository = read(&open.name, &open.bytes, cores())?;
    let part = part(&open.name, &repository, &collections)?;
    let mut out = BufWriter::new(output.stdout());
    for record in selected(&repository, part) {
        let record = record.map_err(|error| Failure::refused(&open.name, error))?;
        let path = RecordPath::split(&record.path);
        if args.json {
            let (cid, bytes) = (record.cid.to_string(), record.block.len());
            write_json_line(&mut out, &RecordLine { path, cid, bytes })?;
        } else {
            writeln!(out, "{}\t{}", Printable(&record.path), record.cid)?;
        }
    }
    Ok(out.flush()?)
}

/// The part with these collections, if there are any.
fn part<'a>(
    name: &Path,
    repository: &Repository<'a>,
    collections: &[CollectionPatternBuf],
) -> Result<Option<Part<'a>>, Failure> {
    if collections.is_empty() {
        return Ok(None);
    }
    let part = Part::read(repository, collections);
    part.map(Some).map_err(|why| Failure::refused(name, why))
}

/// The records of the part, or else of the repository.
fn selected<'a>(
    repository: &Repository<'a>,
    part: Option<Part<'a>>,
) -> impl Iterator<Item = Result<Record<'a>, String>> {
    let all = part.is_none().then(|| records(repository));
    let part = part.into_iter().flat_map(|part| part.records.into_iter().map(Ok));
    all.into_iter().flatten().chain(part)
}

pub(super) fn get(args: &GetArgs, output: Output) -> Result<(), Failure> {
    let open = RepositoryName::parse(&args.repository).open(&[], &args.downloaded)?;
    let repository = read(&open.name, &open.bytes, cores())?;
    let path = path_in(&args.path, &repository)?;
    let mut found = None;
    // The iteration goes to the end: only then is the whole tree checked.
    for record in records(&repository) {
        let record = record.map_err(|error| Failure::refused(&open.name, error))?;
        if record.path == path {
            found = Some(record);
        }
    }
    let missing = || Failure::refused(&open.name, format_args!("no record at {path}"));
    let record = found.ok_or_else(missing)?;
    if args.raw {
        return Ok(output.bytes().write_all(record.block)?);
    }
    let no_json = |error| {
        Failure::refused(&open.name, format_args!("{path}: {error}; --raw prints the bytes"))
    };
    let mut json = record.to_json().map_err(no_json)?.into_bytes();
    escape_json(&mut json, 0);
    json.push(b'\n');
    Ok(output.stdout().write_all(&json)?)
}

/// The record path in the argument: a path, or the URI of a record of this repository.
fn path_in<'a>(argument: &'a str, repository: &Repository<'_>) -> Result<&'a str, Failure> {
    let usage = |what: String| Failure::Usage(format!("{argument}: {what}"));
    let Some(after_scheme) = argument.strip_prefix("at://") else { return Ok(argument) };
    let uri = AtUri::parse(argument).map_err(|error| usage(error.to_string()))?;
    let (authority, owner) = (uri.authority().as_str(), repository.commit().did);
    if authority.starts_with("did:") && authority != owner {
        return Err(usage(format!("the repository is of {owner}")));
    }
    let path = after_scheme.split_once('/').map(|(_, path)| path);
    match (uri.collection(), uri.record_key(), path) {
        (Some(_), Some(_), Some(path)) => Ok(path),
        _ => Err(usage("not the URI of a record".to_owned())),
    }
}

pub(super) fn diff(args: &DiffArgs, output: Output) -> Result<(), Failure> {
    let (old_bytes, new_bytes) = (files::map(&args.old)?, files::map(&args.new)?);
    let (old, new) = (read(&args.old, &old_bytes, cores())?, read(&args.new, &new_bytes, cores())?);
    let (old_did, new_did) = (old.commit().did, new.commit().did);
    if old_did != new_did {
        let what = format!("repositories of two accounts, {old_did} and {new_did}");
        return Err(Failure::Usage(what));
    }
    check_complete(&args.old, &old)?;
    check_complete(&args.new, &new)?;
    let diff = old.diff(&new).map_err(|error| Failure::refused(&args.new, error))?;
    let mut out = BufWriter::new(output.stdout());
    for change in &diff.changes {
        write_change(&mut out, change, args.json)?;
    }
    Ok(out.flush()?)
}

/// Checks that the tree is canonical and complete, and that its keys are record paths.
fn check_complete(file: &Path, repository: &Repository<'_>) -> Result<(), Failure> {
    let complete = records(repository).try_for_each(|record| record.map(drop));
    complete.map_err(|error| Failure::refused(file, error))
}

fn write_change(out: &mut impl Write, change: &Change, json: bool) -> io::Result<()> {
    #[derive(Serialize)]
    struct ChangeLine<'a> {
        #[serde(flatten)]
        path: RecordPath<&'a str>,
        action: &'static str,
        cid: Option<String>,
        prev: Option<String>,
    }
    let path = String::from_utf8_lossy(&change.key);
    let text = |cid: &Option<AnyCid>| cid.as_ref().map(|cid| cid.as_cid_ref().to_string());
    let (prev, cid) = (text(&change.old), text(&change.new));
    let (sign, action) = match (&prev, &cid) {
        (None, _) => ('+', "create"),
        (Some(_), None) => ('-', "delete"),
        (Some(_), Some(_)) => ('~', "update"),
    };
    if json {
        let path = RecordPath::split(&path);
        return write_json_line(out, &ChangeLine { path, action, cid, prev });
    }
    let cids: Vec<String> = [prev, cid].into_iter().flatten().collect();
    writeln!(out, "{sign}\t{}\t{}", Printable(&path), cids.join("\t"))
}

pub(super) fn export(args: &ExportArgs, output: Output) -> Result<(), Failure> {
    let named = RepositoryName::parse(&args.repository);
    let collections = named.collections(&args.collections)?;
    let open = named.open(&collections, &args.downloaded)?;
    let repository = read(&open.name, &open.bytes, cores())?;
    let part = part(&open.name, &repository, &collections)?;
    if args.format == ExportFormat::Car && part.is_none() {
        check_complete(&open.name, &repository)?;
    }
    let write = |out: &mut dyn Write| match (args.format, part) {
        (ExportFormat::Car, None) => write_car(&repository, out),
        (ExportFormat::Car, Some(part)) => Ok(part.write_car(out)?),
        (ExportFormat::Ndjson, part) => write_lines(selected(&repository, part), out),
    };
    let (written, io_failure): (_, &dyn Fn(io::Error) -> Failure) =
        if files::is_standard_stream(&args.out) {
            (write(&mut output.bytes()), &Failure::from)
        } else {
            let file = File::create(&args.out).map_err(Failure::file(&args.out))?;
            (write(&mut &file), &|error| Failure::file(&args.out)(error))
        };
    written.map_err(|error| match error {
        WriteError::Io(error) => io_failure(error),
        WriteError::Refused(why) => Failure::refused(&open.name, why),
    })
}

/// A failed write, or a repository that cannot be exported.
enum WriteError {
    Io(io::Error),
    Refused(String),
}

impl From<io::Error> for WriteError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

fn write_car(repository: &Repository<'_>, out: &mut dyn Write) -> Result<(), WriteError> {
    match repository.export(BufWriter::new(out)) {
        Ok(mut out) => Ok(out.flush()?),
        Err(ExportError::Io(error)) => Err(WriteError::Io(error)),
        Err(ExportError::Repo(error)) => Err(WriteError::Refused(error.to_string())),
    }
}

fn write_lines<'a>(
    records: impl Iterator<Item = Result<Record<'a>, String>>,
    out: &mut dyn Write,
) -> Result<(), WriteError> {
    #[derive(Serialize)]
    struct RecordLine<'a> {
        #[serde(flatten)]
        path: RecordPath<&'a str>,
        cid: String,
        #[serde(flatten)]
        content: RecordContent,
    }
    let mut out = BufWriter::new(out);
    for record in records {
        let record = record.map_err(WriteError::Refused)?;
        let invalid = InvalidRecord::of_record(&record, usize::MAX);
        let content = RecordContent::of(invalid.as_ref(), record.block);
        let (path, cid) = (RecordPath::split(&record.path), record.cid.to_string());
        write_json_line(&mut out, &RecordLine { path, cid, content })?;
    }
    Ok(out.flush()?)
}

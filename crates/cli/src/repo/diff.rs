//! `wireproof repo diff`: which records differ?

use std::io::{BufWriter, Write};
use std::path::Path;

use serde::Serialize;
use wireproof::atproto::mst::Change;
use wireproof::atproto::repo::Repository;
use wireproof::codec::AnyCid;

use super::{open, read, refused};
use crate::args::repo::DiffArgs;
use crate::failure::Failure;
use crate::output::Output;

pub(super) fn run(args: &DiffArgs, output: Output) -> Result<(), Failure> {
    let (old_bytes, new_bytes) = (open(&args.old)?, open(&args.new)?);
    let (old, new) = (read(&args.old, &old_bytes)?, read(&args.new, &new_bytes)?);
    same_account(&old, &new)?;
    whole(&args.old, &old)?;
    whole(&args.new, &new)?;
    let diff = old.diff(&new).map_err(|error| refused(&args.new, error))?;
    let mut out = BufWriter::new(output.stdout());
    for change in &diff.changes {
        write(&mut out, change, args.json)?;
    }
    Ok(out.flush()?)
}

fn same_account(old: &Repository<'_>, new: &Repository<'_>) -> Result<(), Failure> {
    let (old, new) = (old.commit().did, new.commit().did);
    if old == new {
        return Ok(());
    }
    Err(Failure::Usage(format!("repositories of two accounts, {old} and {new}")))
}

/// Holds the tree to be canonical and whole: what is found to differ is then all that differs.
fn whole(file: &Path, repository: &Repository<'_>) -> Result<(), Failure> {
    for record in repository.records() {
        record.map_err(|error| refused(file, error))?;
    }
    Ok(())
}

/// A line of `diff --json`.
#[derive(Serialize)]
struct Line<'a> {
    path: &'a str,
    action: &'static str,
    cid: Option<String>,
    prev: Option<String>,
}

fn write(out: &mut impl Write, change: &Change, json: bool) -> Result<(), Failure> {
    let path = String::from_utf8_lossy(&change.key);
    let text = |cid: &Option<AnyCid>| cid.as_ref().map(|cid| cid.as_cid_ref().to_string());
    let (prev, cid) = (text(&change.old), text(&change.new));
    let (sign, action) = match (&prev, &cid) {
        (None, _) => ('+', "create"),
        (Some(_), None) => ('-', "delete"),
        (Some(_), Some(_)) => ('~', "update"),
    };
    if json {
        let line = Line { path: &path, action, cid, prev };
        serde_json::to_writer(&mut *out, &line).map_err(std::io::Error::from)?;
        return Ok(writeln!(out)?);
    }
    let cids: Vec<String> = [prev, cid].into_iter().flatten().collect();
    Ok(writeln!(out, "{sign}\t{path}\t{}", cids.join("\t"))?)
}

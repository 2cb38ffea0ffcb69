//! `wireproof corpus`: simulated data, written to files.

use std::fs;
use std::io::Write;
use std::path::Path;

use ::bench::corpora::FRAMES_FILE;
use serde::Serialize;
use simnet::hostile::{CaseContext, CaseSet, Expect, Manifest, Spec};
use simnet::nostr_events::{self, EventCounts};
use simnet::nostr_sampling::EventGroup;
use simnet::{firehose, repository_corpus, tree_records};

use crate::args::{GenerateArgs, HostileArgs, Made, NostrCorpusArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::progress::ProgressLine;

pub(crate) fn generate(args: &GenerateArgs, output: Output) -> Result<(), Failure> {
    fs::create_dir_all(&args.out).map_err(Failure::file(&args.out))?;
    for made in &args.made {
        match made {
            Made::Frames => frames(args, output)?,
            Made::Records => records(args, output)?,
            Made::Repository => repository(args, output)?,
        }
    }
    Ok(())
}

fn frames(args: &GenerateArgs, output: Output) -> Result<(), Failure> {
    let usual = firehose::Spec::default();
    let spec = firehose::Spec {
        seed: args.seed.unwrap_or(usual.seed),
        frames: args.frames.map_or(usual.frames, |frames| frames as usize),
        ..usual
    };
    let mut line = ProgressLine::new();
    let corpus = firehose::Corpus::generate(&spec, &mut |done, total| {
        line.at(format!("making {FRAMES_FILE}"), done as u64, total as u64);
    });
    line.end();
    let file = corpus.to_file();
    let manifest = firehose::Manifest::new(&corpus, &file);
    write_json(&args.out.join("accounts.json"), &corpus.account_keys())?;
    let what = format!("{} frames", manifest.counts.frames);
    let made = MadeFile { name: FRAMES_FILE, bytes: &file, sha256: &manifest.sha256, what };
    made.write(&args.out, &manifest, output)
}

fn records(args: &GenerateArgs, output: Output) -> Result<(), Failure> {
    let usual = tree_records::Spec::default();
    let spec = tree_records::Spec {
        seed: args.seed.unwrap_or(usual.seed),
        records: args.records.map_or(usual.records, |records| records as usize),
        ..usual
    };
    let corpus = tree_records::Corpus::generate(&spec);
    let file = corpus.to_file();
    let manifest = tree_records::Manifest::new(&corpus, &file);
    let what = format!("{} records", manifest.counts.records);
    let made = MadeFile { name: RECORDS_FILE, bytes: &file, sha256: &manifest.sha256, what };
    made.write(&args.out, &manifest, output)
}

fn repository(args: &GenerateArgs, output: Output) -> Result<(), Failure> {
    use repository_corpus::BlockOrder;
    let usual = repository_corpus::Spec::default();
    let spec = repository_corpus::Spec {
        seed: args.seed.unwrap_or(usual.seed),
        records: args.records.map_or(usual.records, |records| records as usize),
        order: if args.shuffled { BlockOrder::Shuffled } else { BlockOrder::Streamable },
    };
    let corpus = repository_corpus::Corpus::generate(&spec);
    let file = corpus.to_file();
    let manifest = repository_corpus::Manifest::new(&corpus, &file);
    let what = format!("{} records", manifest.counts.records);
    let made = MadeFile { name: REPOSITORY_FILE, bytes: &file, sha256: &manifest.sha256, what };
    made.write(&args.out, &manifest, output)
}

pub(crate) fn hostile(args: &HostileArgs, output: Output) -> Result<(), Failure> {
    let set = CaseSet::generate(&args.seed.map_or(Spec::default(), |seed| Spec { seed }));
    for case in set.cases() {
        let path = args.out.join(case.file_name());
        let dir = path.parent().expect("a file in a folder");
        fs::create_dir_all(dir).map_err(Failure::file(dir))?;
        write(&path, &case.bytes)?;
        write_json(&path.with_extension("json"), &CaseContext::new(case))?;
    }
    let path = args.out.join(HOSTILE_FILE);
    write_json(&path, &Manifest::new(&set))?;
    let accepted = set.cases().iter().filter(|case| case.expect == Expect::Accept).count();
    let (path, refused) = (path.display(), set.cases().len() - accepted);
    writeln!(output.stdout(), "{path}: {refused} cases to refuse, {accepted} to accept")?;
    Ok(())
}

pub(crate) fn nostr(args: &NostrCorpusArgs, output: Output) -> Result<(), Failure> {
    fs::create_dir_all(&args.out).map_err(Failure::file(&args.out))?;
    let usual = nostr_events::Spec::default();
    let spec = nostr_events::Spec {
        seed: args.seed.unwrap_or(usual.seed),
        events: args.events.map_or(usual.events, |events| events as usize),
        ..usual
    };
    let corpus = nostr_events::Corpus::generate(&spec);
    let counts = |groups: Vec<EventGroup<'_, _>>| {
        EventCounts::of(groups.into_iter().flat_map(|group| group.events))
    };
    for (name, file, counts) in [
        ("nostr-events.jsonl", corpus.to_file(), corpus.counts()),
        ("nostr-by-kind.jsonl", corpus.to_file_by_kind(), counts(corpus.by_kind())),
        ("nostr-by-category.jsonl", corpus.to_file_by_category(), counts(corpus.by_category())),
    ] {
        let manifest = nostr_events::Manifest::new(&spec, counts, &file);
        let what = format!("{} events", manifest.counts.events);
        let made = MadeFile { name, bytes: file.as_bytes(), sha256: &manifest.sha256, what };
        made.write(&args.out, &manifest, output)?;
    }
    Ok(())
}

/// A file that was made, and what to tell of it.
struct MadeFile<'a> {
    name: &'a str,
    bytes: &'a [u8],
    sha256: &'a str,
    what: String,
}

impl MadeFile<'_> {
    /// Writes the file, its description beside it last, and tells of both in a line.
    fn write(&self, dir: &Path, manifest: &impl Serialize, output: Output) -> Result<(), Failure> {
        let path = dir.join(self.name);
        write(&path, self.bytes)?;
        write_json(&path.with_extension("json"), manifest)?;
        let (path, what, len) = (path.display(), &self.what, self.bytes.len());
        let sha256 = self.sha256;
        writeln!(output.stdout(), "{path}: {what}, {len} bytes, SHA-256 {sha256}")?;
        Ok(())
    }
}

fn write_json(path: &Path, value: &impl Serialize) -> Result<(), Failure> {
    let mut text = serde_json::to_vec_pretty(value).expect("text and numbers");
    text.push(b'\n');
    write(path, &text)
}

fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    fs::write(path, bytes).map_err(Failure::file(path))
}

const RECORDS_FILE: &str = "mst-records.bin";

/// The manifest of the hostile set.
const HOSTILE_FILE: &str = "hostile.json";

const REPOSITORY_FILE: &str = "repository.car";

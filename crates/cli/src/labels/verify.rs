//! `wireproof labels verify`: labels in files, each against the key of its source.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::path::{Path, PathBuf};

use ::verify::labels::{LabelJudge, ReceivedLabel, SourceKeys, label_key};
use atproto::label::{Label, LabelPage, UnsignedLabel};
use atproto::syntax::Did;
use base::now_micros;
use clap::{Args, ValueHint};
use crypto::CompressedKey;
use data_encoding::BASE64_NOPAD;
use events::{LabelLine, Verdict};
use label_follower::label_line;

use crate::failure::Failure;
use crate::files;
use crate::log::{self, Level};
use crate::network::{LazyNetwork, NetworkArgs};
use crate::output::Output;

/// Verify labels in files: answers of queryLabels, or lines of `labels follow` and `labels query`.
///
/// The keys are those of --key, or with --line-keys the keys in the lines; otherwise every source is looked up. Exit code 1 if a label
/// is refused.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct VerifyArgs {
    /// The files; - is standard input.
    #[arg(value_name = "FILE|-", required = true, value_hint = ValueHint::FilePath)]
    files: Vec<PathBuf>,
    /// The key of a source: nothing is looked up. Repeatable.
    #[arg(long = "key", value_name = "DID=DID:KEY", value_parser = source_key)]
    keys: Vec<(String, CompressedKey)>,
    /// Use the key that a line has, which was the key at its time: nothing is looked up.
    #[arg(long, conflicts_with = "keys")]
    line_keys: bool,
    #[command(flatten)]
    network: NetworkArgs,
}

fn source_key(text: &str) -> Result<(String, CompressedKey), String> {
    let (did, key) = text.split_once('=').ok_or("expected a DID, an equals sign and a did:key")?;
    Did::parse(did).map_err(|error| error.to_string())?;
    let key = CompressedKey::from_did_key(key).map_err(|error| error.to_string())?;
    Ok((did.to_owned(), key))
}

pub(super) fn run(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let network = LazyNetwork::new(&args.network, &[], false);
    let mut keys = SourceKeyTable::new(args, &network);
    let mut printer = LabelPrinter::new(output);
    for path in &args.files {
        let text = files::read_at_most(path, MAX_FILE_BYTES)?;
        if text.len() > MAX_FILE_BYTES {
            let text = format!("{}: more than {MAX_FILE_BYTES} bytes", path.display());
            return Err(Failure::Refused(text));
        }
        for chunk in labels_in(path, &text)?.chunks(BATCH_LABELS) {
            verify(chunk, &mut keys, &mut printer)?;
        }
    }
    printer.finish()
}

/// A label of a file, and what its line says about it.
#[derive(Default)]
struct FileLabel {
    bytes: Vec<u8>,
    service: Option<String>,
    key: Option<CompressedKey>,
}

/// The labels of an answer, or of lines.
fn labels_in(path: &Path, text: &[u8]) -> Result<Vec<FileLabel>, Failure> {
    if let Ok(page) = LabelPage::parse(text) {
        let of_page = |bytes| FileLabel { bytes, ..FileLabel::default() };
        return Ok(page.labels.into_iter().map(of_page).collect());
    }
    let lines = text.split(|byte| *byte == b'\n').enumerate().filter(|(_, line)| !line.is_empty());
    let labels = lines.filter_map(|(number, line)| {
        let fail = |fault: String| {
            let place = format!("{}: line {}", path.display(), number + 1);
            Err(Failure::Refused(format!(
                "{place}: neither an answer of queryLabels nor a line of labels: {fault}"
            )))
        };
        match LabelLine::parse(line) {
            Ok(line)
                if &*line.kind != LabelLine::LABEL || line.verdict != Some(Verdict::Verified) =>
            {
                None
            }
            Ok(line) => Some(label_of(&line).or_else(|fault| fail(fault.to_owned()))),
            Err(error) => Some(fail(error.to_string())),
        }
    });
    labels.collect()
}

/// The label that a line describes.
fn label_of(line: &LabelLine<'_>) -> Result<FileLabel, &'static str> {
    fn text<'t>(field: &'t Option<events::Text<'_>>) -> Option<&'t str> {
        field.as_deref()
    }
    let unsigned = UnsignedLabel {
        src: text(&line.src).ok_or("no `src`")?,
        uri: text(&line.uri).ok_or("no `uri`")?,
        cid: text(&line.cid),
        val: text(&line.val).ok_or("no `val`")?,
        neg: line.neg,
        cts: text(&line.cts).ok_or("no `cts`")?,
        exp: text(&line.exp),
    };
    let sig = text(&line.sig).and_then(|sig| BASE64_NOPAD.decode(sig.as_bytes()).ok());
    let sig: [u8; 64] =
        sig.and_then(|sig| sig.try_into().ok()).ok_or("no `sig` of 64 bytes in base64")?;
    let key = text(&line.key).map(CompressedKey::from_did_key).transpose();
    Ok(FileLabel {
        bytes: unsigned.with_signature(&sig),
        service: text(&line.service).map(str::to_owned),
        key: key.map_err(|_| "`key` is no did:key")?,
    })
}

fn verify(
    labels: &[FileLabel],
    keys: &mut SourceKeyTable<'_>,
    printer: &mut LabelPrinter,
) -> Result<(), Failure> {
    let sources: BTreeSet<&str> = { labels.iter() }
        .filter_map(|label| Some(Label::parse(&label.bytes).ok()?.fields.src))
        .collect();
    keys.load(&sources)?;
    let now = i64::try_from(now_micros()).unwrap_or(i64::MAX);
    // With keys of lines a source may have another key in each.
    let mut rest = labels;
    while let Some(first) = rest.first() {
        let count = match keys.of_lines {
            true => rest.iter().take_while(|label| label.key == first.key).count(),
            false => rest.len(),
        };
        let (some, later) = rest.split_at(count);
        if keys.of_lines {
            let key = SourceKeys { current: first.key, earlier: Vec::new() };
            keys.known = sources.iter().map(|src| ((*src).into(), key.clone())).collect();
        }
        let received: Vec<ReceivedLabel<'_>> = some
            .iter()
            .map(|label| ReceivedLabel { bytes: &label.bytes, service: label.service.as_deref() })
            .collect();
        let outcomes = keys.judge.judge(&received, &keys.known, now);
        for (received, outcome) in received.iter().zip(&outcomes) {
            printer.print(&label_line(*received, outcome))?;
        }
        rest = later;
    }
    Ok(())
}

/// The keys of sources: given, of lines, or looked up.
struct SourceKeyTable<'a> {
    known: HashMap<Box<str>, SourceKeys>,
    judge: LabelJudge,
    of_lines: bool,
    /// `None` if keys are given.
    network: Option<&'a LazyNetwork<'a>>,
}

impl<'a> SourceKeyTable<'a> {
    fn new(args: &VerifyArgs, network: &'a LazyNetwork<'a>) -> Self {
        let given =
            |(did, key): &(String, CompressedKey)| (did.as_str().into(), SourceKeys::of(*key));
        Self {
            known: args.keys.iter().map(given).collect(),
            judge: LabelJudge::new([0; 16], false),
            of_lines: args.line_keys,
            network: (args.keys.is_empty() && !args.line_keys).then_some(network),
        }
    }

    /// Looks up the sources that are not known yet.
    fn load(&mut self, sources: &BTreeSet<&str>) -> Result<(), Failure> {
        let Some(network) = self.network else { return Ok(()) };
        for src in sources {
            if self.known.contains_key(*src) {
                continue;
            }
            let Ok(did) = Did::parse(src) else { continue };
            let online = network.open()?;
            let account = online.runtime.block_on(online.network.resolver.account(did));
            let key = match account {
                Ok(account) => label_key(&account.document).ok().flatten(),
                Err(error) if error.is_outage() => return Err(error.into()),
                Err(_) => None,
            };
            let current = key.map(|key| *key.as_compressed());
            self.known.insert((*src).into(), SourceKeys { current, earlier: Vec::new() });
        }
        Ok(())
    }
}

/// Prints lines of labels, and counts their verdicts.
pub(super) struct LabelPrinter {
    output: Output,
    line: Vec<u8>,
    verified: u64,
    refused: u64,
}

impl LabelPrinter {
    pub(super) fn new(output: Output) -> Self {
        Self { output, line: Vec::new(), verified: 0, refused: 0 }
    }

    pub(super) fn print(&mut self, line: &LabelLine<'_>) -> Result<(), Failure> {
        let is_verified = line.verdict == Some(Verdict::Verified);
        *if is_verified { &mut self.verified } else { &mut self.refused } += 1;
        self.line.clear();
        line.append(&mut self.line);
        codec::printable::escape_json(&mut self.line, 0);
        self.line.push(b'\n');
        Ok(self.output.bytes().write_all(&self.line)?)
    }

    /// The failure, if a label is refused.
    pub(super) fn finish(self) -> Result<(), Failure> {
        let Self { verified, refused, .. } = self;
        log::print(Level::Info, &format!("{verified} labels verified, {refused} refused"))?;
        match refused {
            0 => Ok(()),
            count => {
                Err(Failure::Refused(format!("{count} of {} labels are refused", verified + count)))
            }
        }
    }
}

const MAX_FILE_BYTES: usize = 1 << 30;

/// Labels that are judged together.
const BATCH_LABELS: usize = 4096;

const EXAMPLES: &str = "\
Examples:
  wireproof labels verify answer.json
  wireproof labels verify lines.jsonl --line-keys
  wireproof labels verify answer.json --key did:web:labels.example=did:key:zQ3sh…";

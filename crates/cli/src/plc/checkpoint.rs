//! `wireproof plc checkpoint` and `wireproof plc prove`: a signed root over the histories of a mirror, and proofs of single ones.

use std::path::PathBuf;

use atproto::syntax::{DatetimeBuf, DidBuf};
use base::now_micros;
use clap::{Args, ValueHint};
use crypto::{Curve, SecretKey};
use data_encoding::HEXLOWER;
use directory::MirrorTree;
use kernels::hex;
use serde::Serialize;
use store::PlcMirrorReader;
use verify::Verified;
use verify::checkpoint::{self, Checkpoint, Expected, UnsignedCheckpoint};

use crate::failure::Failure;
use crate::files;
use crate::output::Output;

/// Sign a root over the histories of all accounts of a mirror, or compare the mirror with such a checkpoint.
///
/// Two mirrors with one root have equal histories. With --check the tree of the mirror is made as it was at the number of the
/// checkpoint; exit code 1 if its root differs.
#[derive(Debug, Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CheckpointArgs {
    /// The file of the mirror.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    from: PathBuf,
    /// The file of the operator's secret key: 64 hexadecimal digits, a key on K-256.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, required_unless_present = "check")]
    key_file: Option<PathBuf>,
    /// The file of the new checkpoint; `-` for standard output.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, default_value = "-")]
    out: PathBuf,
    /// Compare the mirror with this checkpoint, and make none.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, conflicts_with_all = ["key_file", "out"])]
    check: Option<PathBuf>,
    #[command(flatten)]
    expected: ExpectedArgs,
    /// Print one JSON document about the comparison.
    #[arg(long, requires = "check")]
    json: bool,
}

/// Expectations of a checkpoint.
#[derive(Debug, Args)]
pub(super) struct ExpectedArgs {
    /// Require the checkpoint to be of this key, a did:key.
    #[arg(long, value_name = "DID:KEY")]
    checkpoint_key: Option<String>,
    /// Require the checkpoint to be at most this many days old.
    #[arg(long, value_name = "N")]
    #[arg(value_parser = clap::value_parser!(u32))]
    max_age_days: Option<u32>,
}

impl ExpectedArgs {
    /// The checkpoint of a file, verified now.
    pub(super) fn read(&self, file: &std::path::Path) -> Result<Verified<Checkpoint>, Failure> {
        let mut expected = Expected::at(now_micros().cast_signed());
        expected.max_age_micros = self.max_age_days.map(|days| i64::from(days) * 86_400_000_000);
        if let Some(key) = &self.checkpoint_key {
            expected.key = Some(crate::key::parse_option("--checkpoint-key", key, None)?);
        }
        let json = files::read_at_most(file, MAX_CHECKPOINT_BYTES)?;
        checkpoint::verify(&json, &expected)
            .map_err(|why| Failure::refused(file, format_args!("refused ({}): {why}", why.code())))
    }
}

pub(super) fn run(args: &CheckpointArgs, output: Output) -> Result<(), Failure> {
    let mirror = PlcMirrorReader::open(&args.from)?;
    match (&args.check, &args.key_file) {
        (Some(check), _) => compare(args, &mirror, check, output),
        (None, Some(key_file)) => {
            let key = secret_key(key_file)?;
            write(&args.out, &signed(&mirror, &key)?.to_json(), output)
        }
        (None, None) => Err(Failure::Usage("--key-file is required".to_owned())),
    }
}

/// The checkpoint of a mirror, dated now.
fn signed(mirror: &PlcMirrorReader, key: &SecretKey) -> Result<Checkpoint, Failure> {
    let totals = mirror.totals()?;
    let tree = MirrorTree::of(mirror, totals.cursor)?;
    let created_at = DatetimeBuf::from_unix_micros(now_micros().cast_signed());
    let clock = || Failure::Local("the clock of this system has no date".to_owned());
    let unsigned = UnsignedCheckpoint {
        directory: totals.directory,
        created_at: created_at.ok_or_else(clock)?,
        cursor: tree.cursor,
        accounts: tree.accounts,
        operations: tree.operations,
        root: tree.root,
        key: key.public_key().to_did_key(),
    };
    let sig = key.sign(&unsigned.to_bytes());
    Ok(unsigned.with_signature(sig))
}

fn secret_key(file: &std::path::Path) -> Result<SecretKey, Failure> {
    let text = files::read_at_most(file, 1024)?;
    let bytes: Option<[u8; 32]> = HEXLOWER
        .decode(&text.trim_ascii().to_ascii_lowercase())
        .ok()
        .and_then(|bytes| bytes.try_into().ok());
    let key = bytes.and_then(|bytes| SecretKey::from_bytes(Curve::K256, &bytes).ok());
    let rule =
        "a secret key on K-256 has 64 hexadecimal digits; make one with `openssl rand -hex 32`";
    key.ok_or_else(|| Failure::Usage(format!("--key-file {}: {rule}", file.display())))
}

fn write(out: &std::path::Path, json: &str, output: Output) -> Result<(), Failure> {
    let line = format!("{json}\n");
    if files::is_standard_stream(out) {
        use std::io::Write;
        Ok(output.bytes().write_all(line.as_bytes())?)
    } else {
        files::write(out, line.as_bytes())
    }
}

fn compare(
    args: &CheckpointArgs,
    mirror: &PlcMirrorReader,
    check: &std::path::Path,
    output: Output,
) -> Result<(), Failure> {
    let checkpoint = args.expected.read(check)?;
    let content = checkpoint.content();
    let totals = mirror.totals()?;
    if totals.cursor < content.cursor {
        let (at, of) = (totals.cursor, content.cursor);
        let name = files::name(&args.from);
        return Err(Failure::Local(format!(
            "{name}: the mirror is at {at}, and the checkpoint at {of}"
        )));
    }
    let tree = MirrorTree::of(mirror, content.cursor)?;
    let summary = Comparison {
        directory: content.directory.clone(),
        key: content.key.clone(),
        created_at: content.created_at.as_str().to_owned(),
        cursor: content.cursor,
        root: hex::encode(&content.root),
        mirror_root: hex::encode(&tree.root),
        accounts: content.accounts,
        mirror_accounts: tree.accounts,
        is_equal: tree.root == content.root,
    };
    output.document(&summary, args.json, Comparison::to_text)?;
    match summary.is_equal {
        true => Ok(()),
        false => {
            Err(Failure::Refused("the mirror has other histories than the checkpoint".to_owned()))
        }
    }
}

/// The report, as JSON and text, of a comparison.
#[derive(Serialize)]
struct Comparison {
    directory: String,
    key: String,
    created_at: String,
    cursor: u64,
    root: String,
    mirror_root: String,
    accounts: u64,
    mirror_accounts: u64,
    is_equal: bool,
}

impl Comparison {
    fn to_text(&self) -> String {
        let Self { directory, key, created_at, cursor, root, mirror_root, .. } = self;
        format!(
            "{directory} up to {cursor}, signed on {created_at} by {key}\n\
             root of the checkpoint  {root}\nroot of the mirror      {mirror_root}\n"
        )
    }
}

/// Prove that a checkpoint has the history of an account in a mirror, or that it has none.
///
/// The proof is a file that `plc verify` checks offline, with the account's audit log. Exit code 1 if the mirror's tree at the
/// number of the checkpoint has another root.
#[derive(Debug, Args)]
#[command(after_help = PROVE_EXAMPLES)]
pub(crate) struct ProveArgs {
    /// The account.
    #[arg(value_name = "DID")]
    did: DidBuf,
    /// The file of the mirror.
    #[arg(long, value_name = "FILE", env = "WIREPROOF_PLC_MIRROR", value_hint = ValueHint::FilePath)]
    from: PathBuf,
    /// The checkpoint.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    checkpoint: PathBuf,
    /// The file of the proof; `-` for standard output.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath, default_value = "-")]
    out: PathBuf,
    #[command(flatten)]
    expected: ExpectedArgs,
}

pub(super) fn prove(args: &ProveArgs, output: Output) -> Result<(), Failure> {
    let checkpoint = args.expected.read(&args.checkpoint)?;
    let mirror = PlcMirrorReader::open(&args.from)?;
    let content = checkpoint.content();
    let (tree, proof) = MirrorTree::with_proof(&mirror, content.cursor, args.did.as_did())?;
    if tree.root != content.root {
        let name = files::name(&args.from);
        return Err(Failure::Refused(format!(
            "{name}: the mirror has other histories than the checkpoint"
        )));
    }
    write(&args.out, &proof.to_json(), output)
}

/// Maximum length of a checkpoint that is read, in bytes.
const MAX_CHECKPOINT_BYTES: usize = 64 << 10;

const EXAMPLES: &str = "\
Examples:
  wireproof plc checkpoint --from plc.sqlite --key-file operator.key --out checkpoint.json
  wireproof plc checkpoint --from other.sqlite --check checkpoint.json";

const PROVE_EXAMPLES: &str = "\
Examples:
  wireproof plc prove did:plc:ewvi7nxzyoun6zhxrhs64oiz --from plc.sqlite --checkpoint checkpoint.json --out proof.json";

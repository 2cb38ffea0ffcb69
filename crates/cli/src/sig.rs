//! `wireproof sig verify`: checks a signature over the SHA-256 of a message.

use std::path::{Path, PathBuf};

use clap::{Args, Subcommand, ValueHint};
use crypto::{Digest, PublicKey, SignatureFault};
use kernels::sha256;

use crate::failure::Failure;
use crate::files;
use crate::key::{self, KeyCurve};
use crate::output::Output;

/// Verify signatures.
#[derive(Debug, Subcommand)]
pub(crate) enum SigCommand {
    /// Verify a signature over the SHA-256 of a message.
    ///
    /// The rules of repository data apply: 64 bytes of r and s, not DER, both in range, s in the lower half. Exit code
    /// 0 if the signature is valid, 1 if not, 2 for a mistyped key.
    #[command(after_help = EXAMPLES)]
    Verify(SigVerifyArgs),
}

#[derive(Debug, Args)]
pub(crate) struct SigVerifyArgs {
    /// The public key, in any encoding that `wireproof key` reads.
    #[arg(long, value_name = "KEY")]
    key: String,
    /// The curve of a key whose encoding does not name it.
    #[arg(long, visible_alias = "legacy", value_enum)]
    curve: Option<KeyCurve>,
    /// The signature in hexadecimal, or a file that holds it; `-` for standard input.
    #[arg(long, value_name = "HEX|FILE|-", value_hint = ValueHint::FilePath)]
    sig: String,
    #[command(flatten)]
    signed: SignedArgs,
    /// Accept s in the upper half too. Anyone can then derive a second valid signature from the first;
    /// JSON web tokens allow that, repositories do not.
    #[arg(long)]
    allow_high_s: bool,
}

/// The signed message.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
struct SignedArgs {
    /// The file that holds the message; `-` for standard input.
    #[arg(long, value_name = "FILE|-", value_hint = ValueHint::FilePath)]
    message: Option<PathBuf>,
    /// The message in hexadecimal.
    #[arg(long, value_name = "HEX")]
    hex: Option<String>,
    /// The SHA-256 of the message in hexadecimal.
    #[arg(long, value_name = "HEX")]
    digest: Option<String>,
}

pub(crate) fn run(command: &SigCommand, output: Output) -> Result<(), Failure> {
    let SigCommand::Verify(args) = command;
    let key = key::parse_option("--key", &args.key, args.curve)?;
    let signature = signature(&args.sig)?;
    let digest = digest(&args.signed)?;
    let remark = verify(&key, &digest, &signature, args.allow_high_s).map_err(refused)?;
    output.text(&format!("valid: signed by {key}{remark}\n"))
}

/// Verifies a signature, and returns the remark to a valid one.
fn verify(
    key: &PublicKey,
    digest: &Digest,
    signature: &[u8],
    allow_high_s: bool,
) -> Result<&'static str, SignatureFault> {
    match key.verify_digest(digest, signature) {
        Err(SignatureFault::HighS) if allow_high_s => {
            key.verify_digest_allowing_high_s(digest, signature).map(|()| HIGH_S)
        }
        verdict => verdict.map(|()| ""),
    }
}

fn refused(fault: SignatureFault) -> Failure {
    let advice = match fault {
        SignatureFault::HighS => " (--allow-high-s accepts it, for a JSON web token)",
        _ => "",
    };
    Failure::Refused(format!("refused: {fault}{advice}"))
}

/// The signature from hexadecimal digits, or from a file of such digits or of the bytes themselves.
fn signature(text: &str) -> Result<Vec<u8>, Failure> {
    if let Some(bytes) = key::parse_hex(text) {
        return Ok(bytes);
    }
    let path = Path::new(text);
    if !files::is_standard_stream(path) && !path.exists() {
        let message = format!("--sig {text}: neither hexadecimal digits nor a file");
        return Err(Failure::Usage(message));
    }
    let bytes = files::read(path)?;
    let digits = str::from_utf8(&bytes).ok().and_then(|text| key::parse_hex(text.trim()));
    // 64 bytes are a signature, even if all of them are ASCII digits.
    Ok(digits.filter(|_| bytes.len() != 64).unwrap_or(bytes))
}

/// The SHA-256 of the message.
fn digest(signed: &SignedArgs) -> Result<Digest, Failure> {
    if let Some(path) = &signed.message {
        return Ok(sha256::digest(&files::read(path)?));
    }
    if let Some(digits) = &signed.hex {
        return Ok(sha256::digest(&hex_of("--hex", digits)?));
    }
    let digest = hex_of("--digest", signed.digest.as_deref().unwrap_or_default())?;
    let wrong_len = |bytes: Vec<u8>| {
        Failure::Usage(format!("--digest: a SHA-256 has 32 bytes, not {}", bytes.len()))
    };
    digest.try_into().map_err(wrong_len)
}

fn hex_of(option: &str, digits: &str) -> Result<Vec<u8>, Failure> {
    let not_hex = || Failure::Usage(format!("{option}: not pairs of hexadecimal digits"));
    key::parse_hex(digits).ok_or_else(not_hex)
}

const HIGH_S: &str = ", but s is in the upper half: repository data with it is refused";

const EXAMPLES: &str = "\
Examples:
  wireproof sig verify --key \"$DID_KEY\" --sig sig.bin --message unsigned-commit.cbor
  wireproof sig verify --key \"$DID_KEY\" --sig \"$SIG_HEX\" --digest \"$SHA256_HEX\"
  wireproof sig verify --key \"$DID_KEY\" --sig \"$SIG_HEX\" --message token --allow-high-s";

//! `wireproof sig verify`: is this the key's signature?

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;

use wireproof::crypto::{Digest, PublicKey, SignatureFault};
use wireproof::kernels::sha256;

use crate::args::{SignedArgs, VerifyArgs};
use crate::failure::Failure;
use crate::output::Output;
use crate::{hex, key};

pub(crate) fn verify(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let key = key::parse(&args.key, args.curve)?;
    let signature = signature(&args.sig)?;
    let digest = digest(&args.signed)?;
    let remark = judge(&key, &digest, &signature, args.allow_high_s).map_err(refused)?;
    Ok(writeln!(output.stdout(), "valid: signed by {key}{remark}")?)
}

/// What is to be said of a signature that is valid.
fn judge(
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
        SignatureFault::HighS => " (--allow-high-s takes it, for a JSON web token)",
        _ => "",
    };
    Failure::Refused(format!("refused: {fault}{advice}"))
}

/// Hexadecimal digits, or the name of a file that has such digits or the bytes themselves.
fn signature(text: &str) -> Result<Vec<u8>, Failure> {
    if let Some(bytes) = hex::decode(text) {
        return Ok(bytes);
    }
    let path = Path::new(text);
    if !path.exists() {
        let message = format!("--sig {text}: neither hexadecimal digits nor a file");
        return Err(Failure::Usage(message));
    }
    let bytes = fs::read(path).map_err(Failure::file(path))?;
    let digits = str::from_utf8(&bytes).ok().and_then(|text| hex::decode(text.trim()));
    // 64 bytes are a signature, whatever they look like.
    Ok(digits.filter(|_| bytes.len() != 64).unwrap_or(bytes))
}

/// The SHA-256 of what was signed.
fn digest(signed: &SignedArgs) -> Result<Digest, Failure> {
    if let Some(path) = &signed.message {
        return Ok(sha256::digest(&read(path)?));
    }
    if let Some(digits) = &signed.hex {
        let message = hex::decode(digits).ok_or_else(|| not_hex("--hex"))?;
        return Ok(sha256::digest(&message));
    }
    let digits = signed.digest.as_deref().unwrap_or_default();
    let digest = hex::decode(digits).ok_or_else(|| not_hex("--digest"))?;
    let told =
        |bytes: Vec<u8>| format!("--digest: a SHA-256 has 32 bytes, this has {}", bytes.len());
    digest.try_into().map_err(|bytes| Failure::Usage(told(bytes)))
}

fn read(path: &Path) -> Result<Vec<u8>, Failure> {
    if path == Path::new("-") {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    fs::read(path).map_err(Failure::file(path))
}

fn not_hex(option: &str) -> Failure {
    Failure::Usage(format!("{option}: not pairs of hexadecimal digits"))
}

const HIGH_S: &str = ", but s is in the upper half: repository data with it is refused";

//! The secret key of `--auth-key`, which answers requests for authentication.

use std::path::Path;

use bech32::Bech32;
use bech32::primitives::decode::CheckedHrpstring;
use kernels::hex;
use nostr_relay::Authenticator;

use crate::failure::Failure;
use crate::files;

/// Reads the key: 64 hexadecimal digits, or `nsec1…` (NIP-19).
pub(super) fn read(path: &Path) -> Result<Authenticator, Failure> {
    refuse_shared(path)?;
    let refused = |rule: &str| Failure::Usage(format!("--auth-key {}: {rule}", files::name(path)));
    let key = parse(&files::read_secret_text(path)?);
    let key = key.ok_or_else(|| refused("expected 64 hexadecimal digits or nsec1…"))?;
    Authenticator::new(&key).map_err(|_| refused("the number is no secret key"))
}

fn parse(text: &str) -> Option<[u8; 32]> {
    let mut key = [0; 32];
    if hex::decode(text.to_ascii_lowercase().as_bytes(), &mut key) {
        return Some(key);
    }
    let checked = CheckedHrpstring::new::<Bech32>(text).ok()?;
    let is_secret = checked.hrp().to_lowercase() == "nsec";
    let bytes: Vec<u8> = checked.byte_iter().take(33).collect();
    bytes.try_into().ok().filter(|_| is_secret)
}

/// Refuses a key that other users of this machine can read.
#[cfg(unix)]
fn refuse_shared(path: &Path) -> Result<(), Failure> {
    use std::os::unix::fs::PermissionsExt;

    if files::is_standard_stream(path) {
        return Ok(());
    }
    let mode = std::fs::metadata(path).map_err(Failure::file(path))?.permissions().mode();
    match mode & 0o077 {
        0 => Ok(()),
        _ => {
            let name = files::name(path);
            let text = format!("--auth-key {name}: other users may read it: chmod 600 {name}");
            Err(Failure::Usage(text))
        }
    }
}

#[cfg(not(unix))]
fn refuse_shared(_: &Path) -> Result<(), Failure> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_64_digits_or_an_nsec() {
        // The example of NIP-19.
        let digits = "67dea2ed018072d675f5415ecfaed7d2597555e202d85b3d65ea4e58d2d92ffa";
        let nsec = "nsec1vl029mgpspedva04g90vltkh6fvh240zqtv9k0t9af8935ke9laqsnlfe5";
        assert_eq!(parse(nsec).map(|key| hex::encode(&key)), Some(digits.to_owned()));
        assert_eq!(parse(digits), parse(nsec));
        assert_eq!(parse(&digits.to_uppercase()), parse(nsec));
        let npub = "npub10elfcs4fr0l0r8af98jlmgdh9c8tcxjvz9qkw038js35mp4dma8qzvjptg";
        for text in ["", &digits[1..], &nsec[..60], &nsec.replace("laq", "lap"), npub] {
            assert_eq!(parse(text), None, "{text}");
        }
    }
}

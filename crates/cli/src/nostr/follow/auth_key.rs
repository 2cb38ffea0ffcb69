//! The secret key of `--auth-key`, which answers requests for authentication.

use std::path::Path;

use nostr_relay::Authenticator;

use super::super::names;
use crate::failure::Failure;
use crate::files;

/// Reads the key: 64 hexadecimal digits, or `nsec1…` (NIP-19).
pub(super) fn read(path: &Path) -> Result<Authenticator, Failure> {
    refuse_shared(path)?;
    let refused = |rule: &str| Failure::Usage(format!("--auth-key {}: {rule}", files::name(path)));
    let key = names::secret_key(&files::read_secret_text(path)?);
    let key = key.ok_or_else(|| refused("expected 64 hexadecimal digits or nsec1…"))?;
    Authenticator::new(&key).map_err(|_| refused("the number is no secret key"))
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

//! What do the files of a request hold? A file beside the JSON that tells whose it is, and numbers in
//! the formats of this suite.

use std::fs;

use serde::Deserialize;
use serde::de::DeserializeOwned;

/// What is given of an account beside its file.
#[derive(Clone, Debug, Deserialize)]
pub struct Owner {
    pub did: String,
    /// A `did:key`.
    pub signing_key: String,
    /// The time at which the file is to be judged, where there is one, in RFC 3339.
    pub now: Option<String>,
}

/// Reads a file and the JSON beside it.
pub(crate) fn read_pair<T: DeserializeOwned>(files: &[&str]) -> Result<(Vec<u8>, T), String> {
    let [path, beside] = files else {
        return Err("the files are two: one to work on, and a JSON".into());
    };
    let text = read(beside)?;
    let told = serde_json::from_slice(&text).map_err(|error| format!("{beside}: {error}"))?;
    Ok((read(path)?, told))
}

pub(crate) fn read(path: &str) -> Result<Vec<u8>, String> {
    fs::read(path).map_err(|error| format!("{path}: {error}"))
}

/// Cuts a big-endian number off the front.
pub(crate) fn cut_u32(rest: &mut &[u8]) -> Option<u32> {
    rest.split_off(..4)?.try_into().ok().map(u32::from_be_bytes)
}

/// Cuts off a piece that stands behind its length in two bytes.
pub(crate) fn cut_piece<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let len = rest.split_off(..2)?.try_into().ok().map(u16::from_be_bytes)?;
    rest.split_off(..usize::from(len))
}

/// A path of its own for a file that a test writes, however many tests run beside it.
#[cfg(test)]
pub(crate) fn scratch(name: &str) -> std::path::PathBuf {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("runner-shell-{}-{number}-{name}", std::process::id()))
}

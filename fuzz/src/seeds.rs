//! Inputs to begin with: made ones, the saved corpus, inputs that once found a fault, and real files.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use ::nostr::example;
use atproto::label::{Labels, UnsignedLabel};
use simnet::hostile::{CaseSet, InputKind, Spec};

use crate::driver::MAX_INPUT_BYTES;
use crate::nostr;

/// The seeds of a target, of at most [`MAX_INPUT_BYTES`] each.
///
/// Real files are used if the environment variable `WIREPROOF_FIXTURES` names their folder.
pub fn of(target: &str) -> Vec<Vec<u8>> {
    let mut seeds = vec![Vec::new()];
    seeds.extend(made(target));
    seeds.extend(saved(target));
    seeds.extend(of_files(&files(&own("vectors").join(target)), target));
    if let Some(fixtures) = std::env::var_os("WIREPROOF_FIXTURES") {
        let found = files(&PathBuf::from(fixtures).join("atproto"));
        let wanted: Vec<PathBuf> = found.into_iter().filter(|path| is_seed(target, path)).collect();
        seeds.extend(of_files(&wanted, target));
    }
    seeds.retain(|seed| seed.len() <= MAX_INPUT_BYTES);
    seeds
}

/// Inputs that are made here, so that a target reaches its depths without a corpus.
fn made(target: &str) -> Vec<Vec<u8>> {
    match target {
        "frame" | "judge" => frames(),
        "car" | "repository" => cases(InputKind::Repo),
        "labels" => vec![labels()],
        "http_body" => (0..4).map(|framing| [&[framing][..], RESPONSE].concat()).collect(),
        "jetstream" => vec![jetstream(0, JETSTREAM_1), jetstream(3, JETSTREAM_2)],
        "websocket" => vec![b"\0\x82\x05hello\x88\0".to_vec(), b"\xff\x05\x02hello\0\0".to_vec()],
        "negentropy" => vec![
            b"\0\x61\0\0\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
            b"\xff\x01\x01\x01\x02\x02\x02\x03\x03\x03".to_vec(),
        ],
        "nostr_relay" => (0..2).map(|mode| relay(mode, RELAY)).collect(),
        "plc_log" => vec![b"\0\0\x0f\0\0\0\x01\x0f\0\x01\0\0\x0f\0\x02".to_vec()],
        "state_file" => vec![b"\x02\0\0\x1c\x01".to_vec()],
        "nostr_container" => vec![nostr::sample_container()],
        _ if target.starts_with("nostr_") => vec![example::JSON.as_bytes().to_vec()],
        _ => Vec::new(),
    }
}

/// A message of two labels.
fn labels() -> Vec<u8> {
    let label = UnsignedLabel {
        src: "did:web:a.test",
        uri: "did:web:b.test",
        val: "spam",
        cts: "2026-01-01T00:00:00Z",
        ..UnsignedLabel::default()
    };
    let negation = UnsignedLabel { neg: Some(true), exp: Some("2026-02-01T00:00:00Z"), ..label };
    let labels = [label, negation].map(|label| label.with_signature(&[7; 64]));
    Labels { seq: 7, labels: labels.iter().map(Vec::as_slice).collect() }.to_frame()
}

/// The last frame of every hostile case.
fn frames() -> Vec<Vec<u8>> {
    let last = |file: &Vec<u8>| captured(file).last().map(|frame| frame.to_vec());
    cases(InputKind::Frames).iter().filter_map(last).collect()
}

fn cases(kind: InputKind) -> Vec<Vec<u8>> {
    let cases = HOSTILE.cases().iter().filter(|case| case.kind == kind);
    cases.map(|case| case.bytes.clone()).collect()
}

static HOSTILE: LazyLock<CaseSet> = LazyLock::new(|| CaseSet::generate(&Spec::default()));

fn jetstream(mode: u8, message: &str) -> Vec<u8> {
    let len = u16::try_from(message.len()).expect("a short message").to_le_bytes();
    [&[mode][..], &len, message.as_bytes(), &len, message.as_bytes()].concat()
}

/// Messages of a relay, every one after its length.
fn relay(mode: u8, messages: &[&str]) -> Vec<u8> {
    let len = |text: &str| u16::try_from(text.len()).expect("a short message").to_le_bytes();
    let framed = messages.iter().flat_map(|text| [&len(text)[..], text.as_bytes()].concat());
    std::iter::once(mode).chain(framed).collect()
}

/// The corpus of a target that the repository keeps: inputs, every one after its length, in one file.
fn saved(target: &str) -> Vec<Vec<u8>> {
    let file = fs::read(own("corpus").join(target)).unwrap_or_default();
    captured(&file).iter().map(|input| input.to_vec()).collect()
}

/// Writes the files of a folder as the saved corpus of a target, the shortest first, up to `max_bytes`.
///
/// # Errors
/// If a file cannot be read or written.
pub fn save(target: &str, folder: &Path, max_bytes: usize) -> io::Result<usize> {
    let mut inputs: Vec<Vec<u8>> = Vec::new();
    for path in files(folder) {
        inputs.push(fs::read(path)?);
    }
    inputs.sort_by(|a, b| (a.len(), a).cmp(&(b.len(), b)));
    let (mut corpus, mut count) = (Vec::new(), 0);
    for input in inputs.iter().take_while(|input| input.len() <= MAX_INPUT_BYTES) {
        if corpus.len() + 4 + input.len() > max_bytes {
            break;
        }
        corpus.extend((input.len() as u32).to_le_bytes());
        corpus.extend(input);
        count += 1;
    }
    fs::create_dir_all(own("corpus"))?;
    fs::write(own("corpus").join(target), corpus)?;
    Ok(count)
}

/// Writes the seeds of a target into a folder, one file each.
///
/// # Errors
/// If a file cannot be written.
pub fn write(target: &str, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let mut seeds = of(target).into_iter().enumerate();
    seeds.try_for_each(|(index, seed)| fs::write(folder.join(format!("seed-{index}")), seed))
}

/// Whether a real file is a seed.
fn is_seed(target: &str, path: &Path) -> bool {
    let name = path.to_string_lossy();
    let endings: &[&str] = match target {
        "cbor" => &[".cbor", ".dag-cbor"],
        "json" => &[".dag-json", "data-model-valid.json", "data-model-fixtures.json"],
        "car" | "repository" => &[".car"],
        "frame" | "judge" => &[".frame", "_dev.bin"],
        "syntax" => &["_valid.txt", "_invalid.txt"],
        "plc" => return ["/plc/", "/did/"].iter().any(|folder| name.contains(folder)),
        _ => &[],
    };
    endings.iter().any(|ending| name.ends_with(ending))
}

/// The inputs in files: the frames of a capture, the lines of a list, or a whole file. The first
/// [`FIRST_PARTS`] of a file.
fn of_files(paths: &[PathBuf], target: &str) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    for path in paths {
        let Ok(bytes) = fs::read(path) else { continue };
        let parts: Vec<&[u8]> = match path.extension().and_then(|ending| ending.to_str()) {
            Some("bin") => captured(&bytes),
            Some("txt") if target == "syntax" => bytes.split(|byte| *byte == b'\n').collect(),
            _ => vec![&bytes],
        };
        inputs.extend(parts.into_iter().take(FIRST_PARTS).map(<[u8]>::to_vec));
    }
    inputs
}

/// The parts of a file, every one after its length in four bytes, little-endian.
fn captured(mut file: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let Some((len, rest)) = file.split_first_chunk() {
        let Some((part, after)) = rest.split_at_checked(u32::from_le_bytes(*len) as usize) else {
            break;
        };
        parts.push(part);
        file = after;
    }
    parts
}

/// The files in a folder and its subfolders, sorted; none if it cannot be read.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}

/// A folder of this crate.
fn own(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(name)
}

/// Messages of every kind.
const RELAY: &[&str] = &[
    r#"["EVENT","w1",{"id":"","created_at":7}]"#,
    r#"["EOSE","w1"]"#,
    r#"["NEG-MSG","w1","610000"]"#,
    r#"["NEG-ERR","w1","blocked: no"]"#,
    r#"["NOTICE","text"]"#,
    r#"["AUTH","challenge"]"#,
    r#"["CLOSED","w2","error: text"]"#,
];

const FIRST_PARTS: usize = 200;
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\nconnection: close\r\n\r\n{}";
const JETSTREAM_1: &str = r#"{"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","time_us":1782864000000001,"kind":"commit","commit":{"rev":"3jt5tqkl6pb2x","operation":"create","collection":"app.bsky.feed.post","rkey":"3jt5tqkl6pb2x","record":{"$type":"app.bsky.feed.post"},"cid":"bafyreie5cvv4h45feadgeuwhbcutmh6t2ceseocckahdoe6uat64zmz454"}}"#;
const JETSTREAM_2: &str = r##"{"$type":"message","payload":{"$type":"x.y.z#account","seq":9,"did":"did:web:a.test","time":"2026-07-01T00:00:00.000001Z","account":{"active":false,"status":"deleted","time":"2026-07-01T00:00:00Z","seq":3,"did":"did:web:a.test"}}}"##;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_split_at_its_lengths() {
        assert_eq!(captured(b"\x01\0\0\0a\x02\0\0\0bc"), [&b"a"[..], b"bc"]);
        assert_eq!(captured(b"\x01\0\0\0a\xff\0\0\0bc"), [&b"a"[..]]);
    }
}

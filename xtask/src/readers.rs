//! Do other languages' libraries read the events that we write?
//!
//! What `conformance/python/` pins is set up in `target/python/`, anew when the pins have changed.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::process;
use crate::tally::Tally;
use crate::toolchains::{Toolchain, Without};

/// Writes Nostr events in every format, and has Python read them.
pub(crate) fn run(without: &Without, tally: &mut Tally) -> Result<(), String> {
    if !without.has(Toolchain::Python) {
        println!("left out: readers in Python");
        tally.skipped += 1;
        return Ok(());
    }
    let outcome = python(&process::target("python")).and_then(|python| read(&python));
    match outcome {
        Ok(()) => tally.passed += 1,
        Err(_) => tally.failed += 1,
    }
    outcome
}

fn read(python: &Path) -> Result<(), String> {
    let encoded = process::target("python/nostr-encoded.jsonl");
    let file = fs::File::create(&encoded).map_err(|error| fault(&encoded, &error))?;
    let example = ["run", "-p", "wireproof-conformance", "--example", "nostr_encoded"];
    process::run(process::command("cargo", &example).stdout(Stdio::from(file)))?;
    let file = fs::File::open(&encoded).map_err(|error| fault(&encoded, &error))?;
    let python = python.to_string_lossy();
    process::run(process::command(&python, &["conformance/python/read_nostr.py"]).stdin(file))
}

/// The interpreter with the libraries, installed unless they are.
fn python(folder: &Path) -> Result<PathBuf, String> {
    let (python, stamp) = (folder.join("bin/python"), folder.join("made-from"));
    let pins = process::root().join("conformance/python/requirements.txt");
    let wanted = fs::read(&pins).map_err(|error| fault(&pins, &error))?;
    if python.exists() && fs::read(&stamp).is_ok_and(|made_from| made_from == wanted) {
        return Ok(python);
    }
    process::run(process::command("python3", &["-m", "venv", "--clear"]).arg(folder))?;
    let install = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r"];
    process::run(process::command(&python.to_string_lossy(), &install).arg(&pins))?;
    fs::write(&stamp, wanted).map_err(|error| fault(&stamp, &error))?;
    Ok(python)
}

fn fault(path: &Path, error: &std::io::Error) -> String {
    format!("{}: {error}", path.display())
}

//! Python libraries that read the Nostr events that we write: set up in `target/python/` as pinned in
//! `conformance/python/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::left_out;
use crate::process::{self, at};

/// Writes Nostr events in every format and has Python read them.
pub(crate) fn run() -> Result<(), String> {
    let python = python(&process::target("python"))?;
    let encoded = process::target("python/nostr-encoded.jsonl");
    let file = fs::File::create(&encoded).map_err(|error| at(&encoded, &error))?;
    let mut example = process::command(&process::program("examples/nostr_encoded")?, &[]);
    left_out::configure(&mut example);
    process::run(example.stdout(Stdio::from(file)))?;
    let file = fs::File::open(&encoded).map_err(|error| at(&encoded, &error))?;
    let python = python.to_string_lossy();
    process::run(process::command(&python, &["conformance/python/read_nostr.py"]).stdin(file))
}

/// The interpreter, with the libraries installed.
fn python(folder: &Path) -> Result<PathBuf, String> {
    let (python, stamp) = (folder.join("bin/python"), folder.join("made-from"));
    let pins = process::root().join("conformance/python/requirements.txt");
    let wanted = fs::read(&pins).map_err(|error| at(&pins, &error))?;
    if python.exists() && fs::read(&stamp).is_ok_and(|made_from| made_from == wanted) {
        return Ok(python);
    }
    process::run(process::command("python3", &["-m", "venv", "--clear"]).arg(folder))?;
    let install = ["-m", "pip", "install", "--disable-pip-version-check", "--no-input", "-r"];
    process::run(process::command(&python.to_string_lossy(), &install).arg(&pins))?;
    fs::write(&stamp, wanted).map_err(|error| at(&stamp, &error))?;
    Ok(python)
}

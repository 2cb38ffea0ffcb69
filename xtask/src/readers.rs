//! Python libraries that read the Nostr events and the archives that we write: set up in `target/python/` as pinned in
//! `conformance/python/`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use crate::process::{self, at};
use crate::{left_out, venv};

/// Writes Nostr events in every format, and an archive, and has Python read them.
pub(crate) fn run() -> Result<(), String> {
    let python = python()?;
    read_events(&python)?;
    read_archive(&python)
}

/// The interpreter with the libraries.
pub(crate) fn python() -> Result<PathBuf, String> {
    let pins = ["conformance/python/requirements.txt"];
    venv::python(&process::target("python"), "python3", &pins)
}

fn read_events(python: &Path) -> Result<(), String> {
    let encoded = process::target("python/nostr-encoded.jsonl");
    let file = fs::File::create(&encoded).map_err(|error| at(&encoded, &error))?;
    let mut example = process::command(&process::program("examples/nostr_encoded")?, &[]);
    left_out::configure(&mut example);
    process::run(example.stdout(Stdio::from(file)))?;
    let file = fs::File::open(&encoded).map_err(|error| at(&encoded, &error))?;
    let python = python.to_string_lossy();
    process::run(process::command(&python, &["conformance/python/read_nostr.py"]).stdin(file))
}

/// Archives generated frames and a generated repository.
fn read_archive(python: &Path) -> Result<(), String> {
    let wireproof = process::program("wireproof")?;
    let (corpus, archive) = (process::target("python/corpus"), process::target("python/archive"));
    if archive.exists() {
        fs::remove_dir_all(&archive).map_err(|error| at(&archive, &error))?;
    }
    let script = r#"
        "$1" corpus generate frames --frames 300 --out "$2"
        "$1" corpus generate repository --records 300 --out "$2"
        did=$(grep -o 'did:plc:[a-z2-7]*' "$2/repository.json" | head -n 1)
        key=$(grep -o 'did:key:[A-Za-z0-9]*' "$2/repository.json" | head -n 1)
        echo "{\"$did\":\"$key\"}" > "$2/repository-keys.json"
        "$1" archive import "$2/firehose-frames.bin" --keys "$2/accounts.json" --to "$3"
        "$1" archive import "$2/repository.car" --keys "$2/repository-keys.json" --to "$3"
        "$1" archive stats "$3" --json | "$4" conformance/python/read_archive.py "$3"
    "#;
    let mut shell = process::command("sh", &["-ec", script, "read_archive", &wireproof]);
    process::run(shell.arg(&corpus).arg(&archive).arg(python))?;
    let mut shell = process::command("sh", &["-ec", OTHER_ENGINE, "other_engine", &wireproof]);
    process::run(shell.arg(corpus).arg(archive).arg(python))
}

/// Another engine cleans up the logs, and joins files; we go on, prove everything, and erase. Then it reads a checkpoint of ours.
const OTHER_ENGINE: &str = r#"
    "$4" conformance/python/other_engine.py clean "$3"
    "$1" corpus generate frames --seed 2 --frames 200 --out "$2"
    "$1" archive import "$2/firehose-frames.bin" --keys "$2/accounts.json" --to "$3"
    "$1" archive verify "$3"
    "$1" archive stats "$3" --json | "$4" conformance/python/read_archive.py "$3"
    "$4" conformance/python/other_engine.py optimize "$3"
    "$1" archive verify "$3"
    did=$(grep -o 'did:plc:[a-z2-7]*' "$2/accounts.json" | head -n 1)
    "$1" archive erase "$3" --did "$did"
    "$1" archive verify "$3"
    for number in $(seq 1 52); do "$1" archive hide "$3" --did "did:web:account$number.test"; done
    for version in $(seq 0 49); do rm "$3/hidden/_delta_log/$(printf %020d "$version").json"; done
    test "$("$4" conformance/python/other_engine.py count "$3")" = 53
    "$1" archive verify "$3"
"#;

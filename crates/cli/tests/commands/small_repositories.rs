//! Archives of many small repositories: they share files, and no command keeps memory per file.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;
use simnet::repository_corpus::{BlockOrder, Corpus, Spec};
use tempfile::TempDir;

use crate::{json, peak_bytes, run, text};

/// Repositories of three records, a file per repository, and the keys of their accounts.
struct Repositories {
    folder: TempDir,
    cars: Vec<PathBuf>,
}

impl Repositories {
    fn make(count: u64) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (mut keys, mut cars) = (serde_json::Map::new(), Vec::new());
        fs::create_dir(folder.path().join("cars")).unwrap();
        for seed in 0..count {
            let corpus =
                Corpus::generate(&Spec { seed, records: 3, order: BlockOrder::Streamable });
            let account = corpus.repository().account();
            keys.insert(account.did().to_owned(), account.key().did_key().into());
            let path = folder.path().join(format!("cars/{seed}.car"));
            fs::write(&path, corpus.to_file()).unwrap();
            cars.push(path);
        }
        fs::write(folder.path().join("keys.json"), Value::Object(keys).to_string()).unwrap();
        Self { folder, cars }
    }

    fn archive(&self) -> PathBuf {
        self.folder.path().join("archive")
    }

    fn import(&self, path: &Path) -> Value {
        let (archive, keys) = (self.archive(), self.folder.path().join("keys.json"));
        let args = ["archive", "import", text(path), "--keys", text(&keys)];
        json(&run(&[&args[..], &["--to", text(&archive), "--json"]].concat()).success())
    }
}

/// The memory that a command may take.
const MAX_BYTES: u64 = 256 << 20;

#[test]
fn small_repositories_share_files_by_their_size_and_are_imported_once() {
    // At full length, with 100,000.
    let count = if std::env::var_os("WIREPROOF_SOAK").is_some() { 100_000 } else { COUNT };
    let made = Repositories::make(count);
    let cars = made.folder.path().join("cars");
    let imported = made.import(&cars);
    assert_eq!(imported["repository_count"], count);
    assert_eq!(imported["stored_files"], 2 * count.div_ceil(PART_LEN), "{imported}");
    let again = made.import(&cars);
    assert_eq!(again["stored_files"], 0, "{again}");
    // One alone, that was imported with others.
    assert_eq!(made.import(&made.cars[7])["stored_files"], 0);
    let archive = made.archive();
    let verified = json(&run(&["archive", "verify", text(&archive), "--json"]).success());
    assert_eq!(verified["proved_snapshot_count"], count);
    for name in ["verify", "compact", "stats"] {
        let peak = peak_bytes(&["archive", name, text(&archive)]);
        assert!(peak <= MAX_BYTES, "{name}: {peak}");
    }
}

#[test]
fn an_archive_with_files_for_each_repository_is_verified_and_compacted_within_the_same_memory() {
    let made = Repositories::make(FILES);
    for car in &made.cars {
        made.import(car);
    }
    let archive = made.archive();
    let peak = peak_bytes(&["archive", "verify", text(&archive)]);
    assert!(peak <= MAX_BYTES, "verify: {peak}");
    let verified = json(&run(&["archive", "verify", text(&archive), "--json"]).success());
    assert_eq!(
        (&verified["proved_snapshot_count"], &verified["file_count"]),
        (&FILES.into(), &(2 * FILES).into())
    );
}

/// Repositories that share two files.
const PART_LEN: u64 = 4_096;

/// Two files per repository took 0.23 MB.
const COUNT: u64 = 1_500;
const FILES: u64 = 250;

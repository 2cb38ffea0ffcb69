//! Every target runs on its seeds and on some mutations of them, on the toolchain of the workspace.

use std::path::Path;
use std::process::Command;

use wireproof_fuzz::driver::{self, Effort};
use wireproof_fuzz::{TARGETS, seeds};

#[test]
fn every_target_holds_on_its_seeds_and_on_mutations_of_them() {
    let findings = Path::new(env!("CARGO_TARGET_TMPDIR")).join("findings");
    for target in TARGETS {
        let outcome = driver::run(*target, Effort::Inputs(INPUTS), SEED, &findings);
        let inputs = outcome.unwrap_or_else(|finding| panic!("{finding:?}"));
        assert!(inputs > INPUTS, "{} has no seed", target.name);
    }
}

#[test]
fn every_saved_corpus_and_vector_belongs_to_a_target() {
    for folder in ["corpus", "vectors"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        for entry in std::fs::read_dir(folder).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            assert!(TARGETS.iter().any(|target| target.name == name), "{name}");
            assert!(seeds::of(&name).len() > 1, "{name} is not read");
        }
    }
}

/// `cargo xtask fuzz` and the README run it without `--bin`, although the package has a program for libFuzzer too.
#[test]
fn cargo_run_starts_the_driver() {
    let mut cargo = Command::new(env!("CARGO"));
    cargo.args(["metadata", "--offline", "--no-deps", "--format-version", "1"]);
    let output = cargo.current_dir(env!("CARGO_MANIFEST_DIR")).output().unwrap();
    let metadata = String::from_utf8_lossy(&output.stdout);
    assert!(metadata.contains(r#""default_run":"wireproof-fuzz""#), "{metadata}");
}

/// Mutated inputs per target.
const INPUTS: u64 = 1_000;
const SEED: u64 = 1;

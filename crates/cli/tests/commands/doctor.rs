//! `doctor cpu` and `--backend`: the back end in use, and that results do not depend on it.

use std::path::Path;

use assert_cmd::assert::Assert;
use kernels::cpu::Level;
use serde_json::Value;

use crate::{command, json, run, stderr, stdout};

fn with_backend(level: &str, args: &[&str]) -> Assert {
    command(args).env("WIREPROOF_BACKEND", level).assert()
}

fn kernels(report: &Value) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let kernels = report["kernels"].as_array().unwrap().iter();
    kernels.map(|kernel| (text(&kernel["kernel"]), text(&kernel["in_use"]))).collect()
}

#[test]
fn the_back_ends_in_use_are_listed_and_can_be_limited() {
    let all = json(&run(&["doctor", "cpu", "--json"]).success());
    assert_eq!(all["architecture"], std::env::consts::ARCH);
    let portable = json(&with_backend("portable", &["doctor", "cpu", "--json"]).success());
    // Both need no instructions.
    let is_portable = |in_use: &str| matches!(in_use, "portable" | "words");
    assert!(kernels(&portable).iter().all(|(_, in_use)| is_portable(in_use)), "{portable}");
    let names = |report| kernels(report).into_iter().map(|(name, _)| name);
    assert!(names(&all).eq(names(&portable)));
    let text = stdout(&run(&["--backend", "portable", "doctor", "cpu"]).success());
    let mut rows =
        text.lines().filter(|row| row.starts_with("secp256k1 and p256, many signatures"));
    assert!(rows.any(|row| row.contains(" words ")), "{text}");
}

#[test]
fn a_level_that_does_not_exist_or_is_of_another_processor_is_exit_code_2() {
    let unknown = with_backend("sse2", &["doctor", "cpu"]).code(2);
    assert!(stderr(&unknown).contains("portable, neon, avx2, avx512"), "{}", stderr(&unknown));
    let missing = Level::ALL.into_iter().find(|level| !level.is_available()).unwrap();
    let refused = with_backend(missing.name(), &["doctor", "cpu"]).code(2);
    assert!(stderr(&refused).contains("this processor does not have"), "{}", stderr(&refused));
}

#[test]
fn a_repository_gets_the_same_verdict_on_every_level() {
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/guide/examples");
    let file = |name: &str| examples.join(name).to_str().unwrap().to_owned();
    let (archive, document) = (file("repository.car"), file("repository.did.json"));
    let args = ["verify", &archive, "--did-doc", &document, "--json"];
    let verdict = |report: &Assert| {
        let report = json(report);
        ["verified", "findings", "repository"].map(|part| report[part].clone())
    };
    let expected = verdict(&run(&args).success());
    assert_eq!(expected[0], true);
    for level in Level::ALL.into_iter().filter(|level| level.is_available()) {
        let limited = with_backend(level.name(), &args).success();
        assert_eq!(verdict(&limited), expected, "{level:?}");
    }
}

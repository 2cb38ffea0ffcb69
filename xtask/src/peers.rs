//! The benchmark's peers: they must build and do the same work as we do. The code that the runners of a
//! language share must pass its own tests.

use std::collections::BTreeMap;
use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::toolchains::{Toolchain, Without};
use crate::{left_out, process, python_package, verdicts};

/// Runs every task of every peer once on a small corpus, and checks that the peer was built and that its
/// counts equal the corpus's; then the verdicts of the peers that verify Nostr events. Our own program is the one that the tests
/// built.
pub(crate) fn smoke_test(without: &Without) -> Result<(), String> {
    let runners = process::root().join("bench/runners");
    let expected = expected(&runners)?;
    all_are_expected(&peers_in(&runners)?, &expected)?;
    let wanted: Vec<_> = expected.iter().filter(|(_, peer)| !without.excludes(peer)).collect();
    let mut peers: Vec<&str> = wanted.iter().map(|(_, peer)| peer.as_str()).collect();
    peers.sort();
    peers.dedup();
    let results = process::target("smoke.json");
    let (json, peers) = (results.display().to_string(), peers.join(","));
    let once = ["bench", "--all", "--quick", "--passes", "1", "--warmup", "0"];
    process::run(bench(&once)?.args(["--json", &json, "--peers", &peers]))?;
    let text = fs::read_to_string(&results).map_err(|error| format!("{json}: {error}"))?;
    let document = serde_json::from_str(&text).map_err(|error| format!("{json}: {error}"))?;
    let (wanted, absent): (Vec<_>, Vec<_>) =
        wanted.into_iter().partition(|(_, peer)| !lacks_source(&document, peer));
    let faults: Vec<String> =
        wanted.iter().filter_map(|(task, peer)| fault(&document, task, peer)).collect();
    println!("{} of {} tasks of peers are equal", wanted.len() - faults.len(), wanted.len());
    for (task, peer) in absent {
        left_out::note(&format!("{task} of {peer}"), "its source")?;
    }
    if faults.is_empty() { verdicts::check(without) } else { Err(faults.join("\n")) }
}

/// Proves the checks that peers claim, for the peers that are built.
pub(crate) fn prove_claims(without: &Without) -> Result<(), String> {
    let runners = process::root().join("bench/runners");
    let peers = peers_in(&runners)?.into_iter().chain(["wireproof".to_owned()]);
    let peers: Vec<String> = peers.filter(|peer| !without.excludes(peer)).collect();
    let claims = ["bench", "claims", "--peers", &peers.join(",")];
    process::run(&mut bench(&claims)?)
}

/// `wireproof` with builds for tests: its own, the Python package's, and Rust peers of [`RUST_PROFILE`].
fn bench(args: &[&str]) -> Result<Command, String> {
    let mut bench = process::command(&process::program("wireproof")?, args);
    bench.env("WIREPROOF_PYTHON_PACKAGE", python_package::built("peers")?);
    bench.env("WIREPROOF_RUST_PROFILE", RUST_PROFILE);
    Ok(bench)
}

/// The profile of `bench/runners` for comparisons of counts and verdicts.
pub(crate) const RUST_PROFILE: &str = "parity";

/// Whether a peer is unavailable because its source is not to be had and no checkout is named. With its source, it is tested
/// like the others.
fn lacks_source(results: &Value, peer: &str) -> bool {
    let Some((_, variable)) = CHECKOUTS.into_iter().find(|(id, _)| *id == peer) else {
        return false;
    };
    let unavailable = results["unavailable"].as_array().into_iter().flatten();
    env::var_os(variable).is_none() && unavailable.into_iter().any(|item| item["peer"] == peer)
}

/// Peers whose source may be a checkout that a variable names.
const CHECKOUTS: [(&str, &str); 2] =
    [("go-atmos", "WIREPROOF_ATMOS"), ("zig-zat", "WIREPROOF_ZAT")];

/// Every task with all its peers, by the list of the harness; we have all of these tasks.
fn expected(runners: &Path) -> Result<Vec<(String, String)>, String> {
    let path = runners.join("tasks.json");
    let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let tasks: BTreeMap<String, Vec<String>> =
        serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?;
    let of_task = |(task, peers): (String, Vec<String>)| {
        let peers = peers.into_iter().chain(["wireproof".to_owned()]);
        peers.map(move |peer| (task.clone(), peer))
    };
    Ok(tasks.into_iter().flat_map(of_task).collect())
}

/// Rejects a peer without an expected task: its failures would go unnoticed.
fn all_are_expected(folders: &[String], expected: &[(String, String)]) -> Result<(), String> {
    match folders.iter().find(|folder| !expected.iter().any(|(_, peer)| peer == *folder)) {
        Some(folder) => {
            Err(format!("{folder} has no task: give it one in bench/runners/tasks.json"))
        }
        None => Ok(()),
    }
}

/// Tests the code that the runners of a language share. Their folders are workspaces of their own.
pub(crate) fn shell_tests(without: &Without) -> Result<(), String> {
    let shell = "bench/runners/rust-shell/Cargo.toml";
    let rust = ["test", "--locked", "--all-features", "--manifest-path", shell];
    let mut command = process::command("cargo", &rust);
    command.arg("--target-dir").arg(process::target("bench/rust"));
    process::run(&mut command)?;
    if without.has(Toolchain::Go) {
        let folder = process::root().join("bench/runners/go-shell");
        process::run(process::command("go", &["test", "./..."]).current_dir(folder))?;
    }
    Ok(())
}

/// The folders of runners, without the shared `*-shell`.
fn peers_in(runners: &Path) -> Result<Vec<String>, String> {
    let fault = |error: std::io::Error| format!("{}: {error}", runners.display());
    let mut peers = Vec::new();
    for entry in fs::read_dir(runners).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.ends_with("-shell") && name != "target" {
            peers.push(name);
        }
    }
    peers.sort();
    Ok(peers)
}

/// The fault of a peer's rows in the results of a task, if there is one.
fn fault(results: &Value, task: &str, peer: &str) -> Option<String> {
    let of_peer = |list: &str| {
        let items = results[list].as_array().cloned().unwrap_or_default();
        items.into_iter().filter(|item| item["peer"] == peer).collect::<Vec<_>>()
    };
    if let Some(unavailable) = of_peer("unavailable").first() {
        return Some(format!("{peer} is unavailable: {}", unavailable["reason"]));
    }
    let mut rows = of_peer("rows");
    rows.retain(|row| row["task"] == task);
    if rows.is_empty() {
        return Some(format!("{peer} has no row of the task {task} in the results"));
    }
    if task == "hostile" {
        return rows.iter().find_map(|row| hostile_fault(row, peer));
    }
    let unequal = rows.iter().find(|row| row["parity"] != "ok" || row["per_s"].is_null())?;
    Some(format!(
        "{peer}, {task} {}: parity {}, {}",
        unequal["variant"], unequal["parity"], unequal["note"]
    ))
}

/// The fault of a hostile row. Peers may judge cases wrongly, we may not; every peer must accept some and
/// refuse some.
fn hostile_fault(row: &Value, peer: &str) -> Option<String> {
    let has_outcome = |outcome: &str| {
        row["cases"].as_array().into_iter().flatten().any(|case| case["outcome"] == outcome)
    };
    let is_ours = ["wireproof", "python-wireproof", "ts-wireproof"].contains(&peer);
    if (is_ours && row["parity"] != "ok") || !has_outcome("accepted") || !has_outcome("refused") {
        return Some(format!("{peer}, hostile {}: {}", row["variant"], row["counts"]));
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_passes_only_if_all_its_rows_of_the_task_are_equal() {
        let row = |task, peer, parity| {
            serde_json::json!({"task": task, "peer": peer, "variant": "full", "parity": parity,
                "per_s": {"min": 1.0, "median": 1.0, "max": 1.0}, "note": null})
        };
        let mut unfinished = row("sigs", "d", "ok");
        unfinished["per_s"] = Value::Null;
        let results = serde_json::json!({
            "rows": [
                row("sigs", "a", "ok"), row("sigs", "a", "ok"), row("decode", "a", "mismatch"),
                row("sigs", "b", "ok"), row("sigs", "b", "mismatch"), unfinished,
            ],
            "unavailable": [{"peer": "c", "reason": "no compiler"}],
        });
        assert_eq!(fault(&results, "sigs", "a"), None);
        assert!(fault(&results, "decode", "a").unwrap().contains("mismatch"));
        assert!(fault(&results, "schnorr", "a").unwrap().contains("no row of the task schnorr"));
        assert!(fault(&results, "sigs", "b").unwrap().contains("mismatch"));
        assert!(fault(&results, "sigs", "c").unwrap().contains("no compiler"));
        assert!(fault(&results, "sigs", "d").is_some());
        assert!(fault(&results, "sigs", "e").unwrap().contains("no row"));
    }

    #[test]
    fn a_peer_without_its_source_is_left_out_and_one_that_fails_otherwise_is_not() {
        let results = serde_json::json!({"unavailable": [
            {"peer": "zig-zat", "reason": "its source is not available"},
            {"peer": "go-raw", "reason": "no compiler"},
        ]});
        assert_eq!(lacks_source(&results, "zig-zat"), env::var_os("WIREPROOF_ZAT").is_none());
        assert!(!lacks_source(&results, "go-atmos"));
        assert!(!lacks_source(&results, "go-raw"));
    }

    #[test]
    fn a_peer_may_judge_some_hostile_cases_wrongly_and_we_none() {
        let row = |peer, parity, outcomes: &[&str]| {
            let cases: Vec<_> =
                outcomes.iter().map(|outcome| serde_json::json!({"outcome": outcome})).collect();
            serde_json::json!({"task": "hostile", "peer": peer, "variant": "repo", "parity": parity,
                "per_s": null, "counts": {"accepted": 1}, "cases": cases})
        };
        let results = serde_json::json!({"unavailable": [], "rows": [
            row("a", "mismatch", &["accepted", "refused", "crashed"]),
            row("b", "mismatch", &["accepted", "hung"]),
            row("c", "mismatch", &["crashed", "refused"]),
            row("wireproof", "mismatch", &["accepted", "refused"]),
        ]});
        assert_eq!(fault(&results, "hostile", "a"), None);
        for peer in ["b", "c", "wireproof"] {
            assert!(fault(&results, "hostile", peer).is_some(), "{peer}");
        }
    }

    #[test]
    fn a_runner_without_an_expected_task_is_a_fault() {
        let folders =
            |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
        let expected = expected(&process::root().join("bench/runners")).unwrap();
        assert_eq!(all_are_expected(&folders(&["go-indigo", "rust-nostr"]), &expected), Ok(()));
        assert!(all_are_expected(&folders(&["go-indigo", "go-stranger"]), &expected).is_err());
    }
}

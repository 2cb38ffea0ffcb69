//! Does every peer of the benchmark still build, and still do the same work as we do? And does what
//! the runners of a language share still pass its own tests?

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::process;
use crate::tally::Tally;
use crate::toolchains::{Toolchain, Without};

/// Has each peer decode a small corpus once, and checks that it was built, run and equal.
pub(crate) fn smoke(without: &Without, tally: &mut Tally) -> Result<(), String> {
    let all = peers_in(&process::root().join("bench/runners"))?;
    let (excluded, mut wanted): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|peer| without.excludes(peer));
    wanted.push(OURS.to_owned());
    let results = process::target("smoke.json");
    let (json, peers) = (results.display().to_string(), wanted.join(","));
    let bench = ["run", "--quiet", "--release", "--", "bench", "decode", "--quick"];
    let once = ["--passes", "1", "--warmup", "0", "--json", &json, "--peers", &peers];
    process::run(process::command("cargo", &bench).args(once))?;
    let text = fs::read_to_string(&results).map_err(|error| format!("{json}: {error}"))?;
    let document = serde_json::from_str(&text).map_err(|error| format!("{json}: {error}"))?;
    let faults: Vec<String> = wanted.iter().filter_map(|peer| fault(&document, peer)).collect();
    tally.passed += (wanted.len() - faults.len()) as u64;
    tally.failed += faults.len() as u64;
    tally.skipped += excluded.len() as u64;
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n")) }
}

/// Tests what the runners of a language share. Their folders are workspaces of their own.
pub(crate) fn shell_tests(without: &Without, tally: &mut Tally) -> Result<(), String> {
    let rust = ["test", "--locked", "--manifest-path", "bench/runners/rust-shell/Cargo.toml"];
    let mut command = process::command("cargo", &rust);
    command.arg("--target-dir").arg(process::target("bench/rust"));
    process::run_watched(&mut command, |line| tally.add_line(line))?;
    if without.has(Toolchain::Go) {
        let folder = process::root().join("bench/runners/go-shell");
        process::run(process::command("go", &["test", "./..."]).current_dir(folder))?;
        tally.passed += 1;
    }
    Ok(())
}

/// The folders of runners; what the runners of a language share is not one.
fn peers_in(runners: &Path) -> Result<Vec<String>, String> {
    let fault = |error: std::io::Error| format!("{}: {error}", runners.display());
    let mut peers = Vec::new();
    for entry in fs::read_dir(runners).map_err(fault)? {
        let entry = entry.map_err(fault)?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if entry.path().is_dir() && !name.ends_with("-shell") {
            peers.push(name);
        }
    }
    peers.sort();
    Ok(peers)
}

/// What is wrong with a peer's part of the results, if anything is.
fn fault(results: &Value, peer: &str) -> Option<String> {
    let of_peer = |list: &str| {
        let items = results[list].as_array().cloned().unwrap_or_default();
        items.into_iter().filter(|item| item["peer"] == peer).collect::<Vec<_>>()
    };
    if let Some(unavailable) = of_peer("unavailable").first() {
        return Some(format!("{peer} is unavailable: {}", unavailable["reason"]));
    }
    let rows = of_peer("rows");
    if rows.is_empty() {
        return Some(format!("{peer} has no row in the results"));
    }
    let unequal = rows.iter().find(|row| row["parity"] != "ok" || row["per_s"].is_null())?;
    Some(format!(
        "{peer}, {}: parity {}, {}",
        unequal["variant"], unequal["parity"], unequal["note"]
    ))
}

const OURS: &str = "wireproof";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_passes_only_with_rows_that_all_did_the_same_work() {
        let row = |peer, parity| {
            serde_json::json!({"peer": peer, "variant": "verified", "parity": parity,
                "per_s": {"min": 1.0, "median": 1.0, "max": 1.0}, "note": null})
        };
        let mut unfinished = row("d", "ok");
        unfinished["per_s"] = Value::Null;
        let results = serde_json::json!({
            "rows": [row("a", "ok"), row("a", "ok"), row("b", "ok"), row("b", "mismatch"), unfinished],
            "unavailable": [{"peer": "c", "reason": "no compiler"}],
        });
        assert_eq!(fault(&results, "a"), None);
        assert!(fault(&results, "b").unwrap().contains("mismatch"));
        assert!(fault(&results, "c").unwrap().contains("no compiler"));
        assert!(fault(&results, "d").is_some());
        assert!(fault(&results, "e").unwrap().contains("no row"));
    }
}

//! `cargo xtask js --measure`: the npm package next to other packages of JavaScript, in one run of the benchmark, and the table of that run.

use std::fmt::Write;
use std::fs;

use serde_json::Value;

use crate::process::{self, at};

/// Runs the benchmark with the packages of JavaScript alone, and writes the run and its table.
pub(crate) fn measure() -> Result<(), String> {
    let run = process::root().join(RUN);
    let mut bench = process::command(&process::program("wireproof-bench")?, &["bench"]);
    bench.args(TASKS).args(["--passes", "9", "--warmup", "5", "--peers", PEERS]);
    process::run(bench.arg("--json").arg(&run))?;
    let file = process::root().join(TABLE);
    fs::write(&file, table(&read()?)?).map_err(|error| at(&file, &error))
}

fn read() -> Result<Value, String> {
    let file = process::root().join(RUN);
    let text = fs::read_to_string(&file).map_err(|error| at(&file, &error))?;
    serde_json::from_str(&text).map_err(|error| format!("{}: {error}", file.display()))
}

/// The document of a run.
fn table(run: &Value) -> Result<String, String> {
    let rows = run["rows"].as_array().ok_or("a run without rows")?;
    let machine = &run["machine"];
    let word = |value: &Value| value.as_str().unwrap_or("unknown").to_owned();
    let (day, cpu, node) =
        (word(&run["started"]), word(&machine["cpu"]), word(&machine["toolchains"]["node"]));
    let day = day.split('T').next().unwrap_or_default();
    let mut text = format!(
        "# The npm package next to others\n\n\
         From [one run](measured.json) of the benchmark: {day}, one core of {cpu}, Node {node}. `cargo xtask js --measure` repeats it.\n\
         [BIAS](../../bench/BIAS.md) says how each package is called. They check less: the last column has the number of checks.\n\n\
         | work | package | units a second | slowest – fastest pass | wireproof is | checks |\n|---|---|---:|---:|---:|---:|\n"
    );
    for (name, task, ours, others) in WORK {
        let row = |peer: &str, variant: &str| {
            let is_it = |row: &&Value| {
                row["task"] == task && row["peer"] == peer && row["variant"] == variant
            };
            rows.iter().find(is_it).ok_or(format!("no row {task} {variant} of {peer}"))
        };
        let own = row("ts-wireproof", ours)?;
        write_row(&mut text, name, "wireproof", own, None);
        for (package, peer, variant) in others {
            write_row(&mut text, "", package, row(peer, variant)?, Some(own));
        }
    }
    Ok(text)
}

fn write_row(text: &mut String, name: &str, package: &str, row: &Value, own: Option<&Value>) {
    let per_s = |row: &Value, of: &str| row["per_s"][of].as_f64().unwrap_or_default();
    let median = per_s(row, "median");
    let ratio = own.map_or(String::new(), |own| format!("{:.1} ×", per_s(own, "median") / median));
    let version = row["version"].as_str().unwrap_or_default();
    let range = format!("{} – {}", figure(per_s(row, "min")), figure(per_s(row, "max")));
    let checks = row["checks"].as_array().map_or(0, Vec::len);
    let median = figure(median);
    writeln!(text, "| {name} | {package} {version} | {median} | {range} | {ratio} | {checks} |")
        .expect("a text takes everything");
}

/// Three digits of a small figure, all of a large one.
fn figure(value: f64) -> String {
    match value {
        0.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

const RUN: &str = "bindings/js/measured.json";
const TABLE: &str = "bindings/js/measured.md";

const TASKS: [&str; 5] = ["decode", "sigs", "repo", "commit", "nostr-validated"];
const PEERS: &str = "ts-wireproof,ts-atproto,ts-atcute,ts-noble,ts-nostr-tools";

/// A work, its task, our variant, and the others: their package, peer and variant.
type Work = (
    &'static str,
    &'static str,
    &'static str,
    &'static [(&'static str, &'static str, &'static str)],
);

const WORK: [Work; 5] = [
    (
        "repository of 192,000 records",
        "repo",
        "total",
        &[("@atproto/repo, by @atproto/crypto", "ts-atproto", "total")],
    ),
    (
        "commit judged",
        "commit",
        "full",
        &[("@atproto/sync, by @atproto/crypto", "ts-atproto", "full")],
    ),
    (
        "frame decoded with hashes",
        "decode",
        "verified",
        &[("@atcute/car, @atcute/cbor", "ts-atcute", "verified")],
    ),
    (
        "K-256 signature",
        "sigs",
        "crypto",
        &[
            ("@noble/curves", "ts-noble", "crypto"),
            ("@noble/curves, uncompressed key,", "ts-noble", "preparsed"),
            ("@atproto/crypto", "ts-atproto", "crypto"),
        ],
    ),
    (
        "Nostr event (BIP-340)",
        "nostr-validated",
        "json",
        &[
            ("@noble/curves", "ts-noble", "json"),
            ("nostr-tools by @noble/curves", "ts-nostr-tools", "json/pure"),
            ("nostr-tools by nostr-wasm (libsecp256k1)", "ts-nostr-tools", "json"),
        ],
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_of_the_run() {
        let text = fs::read_to_string(process::root().join(TABLE)).unwrap();
        assert_eq!(table(&read().unwrap()).unwrap(), text, "write it: cargo xtask js --measure");
    }
}

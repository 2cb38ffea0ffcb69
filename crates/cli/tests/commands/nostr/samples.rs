//! `nostr sizes`, `analyze`, `sample` and `recommend`, and `corpus nostr`.

use std::fs;
use std::io::Write;

use serde_json::Value;

use super::{Corpus, nostr};
use crate::{json, stderr, stdout, text};

#[test]
fn a_corpus_is_three_files_with_descriptions() {
    let corpus = Corpus::make();
    for name in ["nostr-events", "nostr-by-kind", "nostr-by-category"] {
        let file = fs::read(corpus.path(&format!("{name}.jsonl"))).unwrap();
        let manifest = fs::read(corpus.path(&format!("{name}.json"))).unwrap();
        let manifest: Value = serde_json::from_slice(&manifest).unwrap();
        assert_eq!(manifest["file_bytes"], file.len() as u64);
    }
    let manifest = fs::read(corpus.path("nostr-events.json")).unwrap();
    let manifest: Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["counts"]["events"], 60);
}

#[test]
fn sizes_are_those_of_the_same_events_in_every_format() {
    let corpus = Corpus::make();
    let printed = json(&nostr(&["sizes", text(&corpus.events()), "--json"]).success());
    let bytes = fs::read(corpus.events()).unwrap().len() as u64;
    assert_eq!(printed["events"], 60);
    assert_eq!(printed["formats"][0]["format"], "json");
    assert_eq!(printed["formats"][0]["raw"], bytes - 60);
    for found in printed["formats"].as_array().unwrap() {
        assert!(found["framed_zstd3"].as_u64() < found["zstd3"].as_u64(), "{found}");
        assert_eq!((&found["events"], &found["unheld"]["events"]), (&60.into(), &0.into()));
    }
    let args = ["--kind", "3", "--formats", "json,cbor-packed", "--json"];
    let printed =
        json(&nostr(&[&["sizes", text(&corpus.events())][..], &args[..]].concat()).success());
    assert_eq!(printed["formats"].as_array().unwrap().len(), 2);
    assert!(printed["events"].as_u64() < Some(60));
    let table = stdout(&nostr(&["sizes", text(&corpus.events())]).success());
    assert!(table.contains("framed zstd-3") && table.contains("proto-binary"), "{table}");
}

#[test]
fn sizes_name_an_event_that_a_format_cannot_hold_and_keep_it_in_the_sums_of_the_others() {
    let corpus = Corpus::make();
    let long = format!(r#""tags":[["summary","{}"]],"#, "x".repeat(40_000));
    let with_long = |line: &str| {
        let (tags, content) =
            (line.find(r#""tags":"#).unwrap(), line.find(r#""content":"#).unwrap());
        format!("{}{long}{}", &line[..tags], &line[content..])
    };
    let file = corpus.changed(3, with_long);
    let line = fs::read_to_string(&file).unwrap().lines().nth(3).unwrap().to_owned();
    let id = serde_json::from_str::<Value>(&line).unwrap()["id"].as_str().unwrap().to_owned();
    let args = ["sizes", text(&file), "--formats", "json,capnp,notepack"];
    let printed = json(&nostr(&[&args[..], &["--json"]].concat()).success());
    let [json, capnp, notepack] = [0, 1, 2].map(|at| &printed["formats"][at]);
    assert_eq!([json, capnp, notepack].map(|it| it["events"].as_u64()), [60, 59, 60].map(Some));
    assert_eq!(capnp["unheld"]["named"][0]["id"], id);
    assert_eq!(notepack["json"]["raw"], json["raw"]);
    let without = json["raw"].as_u64().unwrap() - line.len() as u64;
    assert_eq!(capnp["json"]["raw"], without);
    let out = corpus.path("events.capnp");
    let refused = nostr(&["convert", text(&file), "--to", "capnp", "-o", text(&out)]).code(1);
    assert!(stderr(&refused).contains(&format!("event 3, {id}: ")), "{}", stderr(&refused));
    let table = stdout(&nostr(&args).success());
    assert!(table.contains("capnp cannot hold 1 of the events:"), "{table}");
    assert!(table.contains(&format!("\n  {id} of kind ")), "{table}");
}

#[test]
fn an_analysis_has_kinds_sizes_and_tags() {
    let corpus = Corpus::make();
    let printed = json(&nostr(&["analyze", text(&corpus.events()), "--json"]).success());
    assert_eq!(printed["events"], 60);
    assert_eq!(printed["kinds"][0]["kind"], 1);
    let table = stdout(&nostr(&["analyze", text(&corpus.events())]).success());
    assert!(table.starts_with("60 events, ") && table.contains("by tags"), "{table}");
}

/// Results with rows of two formats, the second of which is faster and shorter.
fn results() -> String {
    let row = |task: &str, variant: &str, per_s: f64, raw: u64| {
        let sizes =
            serde_json::json!({"raw": raw, "gzip6": raw, "zstd3": raw, "framed_zstd3": raw});
        serde_json::json!({
            "task": task, "variant": variant, "peer": "wireproof", "language": "Rust", "version": "1",
            "checks": [], "unit": "event", "units": 1, "bytes": 1, "passes_ns": [1],
            "per_s": {"min": per_s, "median": per_s, "max": per_s}, "mb_per_s": null,
            "sizes": sizes, "counts": {}, "parity": "ok", "note": null,
        })
    };
    let rows: Vec<Value> = [("json", 1e6, 200), ("proto-binary", 2e6, 100)]
        .into_iter()
        .flat_map(|(format, per_s, bytes)| {
            let tasks = ["nostr-serialize", "nostr-deserialize", "nostr-validated", "nostr-size"];
            tasks.map(|task| row(task, format, per_s, bytes))
        })
        .collect();
    serde_json::json!({
        "schema": "wireproof-bench/1", "started": "2026-11-01T00:00:00Z",
        "machine": {"cpu": "a processor", "cores": 1, "features": [], "os": "", "toolchains": {}},
        "corpora": [], "rows": rows, "unavailable": [],
    })
    .to_string()
}

/// The lines of a sample.
fn sample(args: &[&str]) -> Vec<String> {
    let printed = stdout(&nostr(&[&["sample"][..], args].concat()).success());
    printed.lines().map(str::to_owned).collect()
}

#[test]
fn a_sample_is_some_of_the_events_in_their_order_and_the_same_for_a_seed() {
    let corpus = Corpus::make();
    let path = corpus.events();
    let file = fs::read_to_string(&path).unwrap();
    let all: Vec<&str> = file.lines().collect();
    let first = sample(&[text(&path), "--count", "20"]);
    let places = first.iter().map(|line| all.iter().position(|other| other == line).unwrap());
    let places: Vec<usize> = places.collect();
    assert!(places.len() == 20 && places.is_sorted(), "{places:?}");
    assert_eq!(sample(&[text(&path), "--count", "20", "--seed", "0"]), first);
    assert_ne!(sample(&[text(&path), "--count", "20", "--seed", "1"]), first);
    assert_eq!(sample(&[text(&path)]), all);
    let assert = nostr(&["sample", text(&path), "--count", "20"]).success();
    assert!(stderr(&assert).contains("20 of 60 events"), "{}", stderr(&assert));
    for args in
        [["--count", "0"], ["--size", "giant"], ["--tag-count", "6"], ["--stratify", "author"]]
    {
        nostr(&[&["sample", text(&path)][..], &args].concat()).code(2);
    }
}

#[test]
fn a_sample_is_the_same_from_compressed_files_and_from_parts_in_another_order() {
    let corpus = Corpus::make();
    let file = fs::read(corpus.events()).unwrap();
    let (folder, half) = (corpus.path("parts"), file.len() / 2);
    fs::create_dir(&folder).unwrap();
    let middle = half + file[half..].iter().position(|byte| *byte == b'\n').unwrap() + 1;
    fs::write(folder.join("a.jsonl.zst"), zstd::encode_all(&file[middle..], 3).unwrap()).unwrap();
    fs::write(folder.join("b.jsonl"), &file[..middle]).unwrap();
    let archive = corpus.converted("pb.gz");
    let sorted = |args: &[&str]| {
        let mut lines = sample(args);
        lines.sort_unstable();
        lines
    };
    let options = ["--count", "7", "--stratify", "kind"];
    let whole = sorted(&[&[text(&corpus.events())][..], &options].concat());
    assert_eq!(whole.len(), 7);
    for input in [&folder, &archive] {
        assert_eq!(sorted(&[&[text(input)][..], &options].concat()), whole, "{}", input.display());
    }
}

#[test]
fn an_event_that_cannot_be_read_ends_a_sample_with_its_place() {
    let corpus = Corpus::make();
    let path = corpus.changed(7, |_| "{}".to_owned());
    let assert = nostr(&["sample", text(&path)]).code(1);
    assert!(stderr(&assert).contains("event 7, at byte 0: `id` is missing"), "{}", stderr(&assert));
    assert_eq!(stdout(&assert), "");
}

#[test]
fn samples_of_real_events_have_the_kinds_sizes_and_tags_that_are_asked_for() {
    let events = conformance::fixtures!(Captures).path("nostr/events.jsonl");
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("sample.jsonl");
    let analyzed = |args: &[&str]| {
        fs::write(&file, sample(&[&[text(&events)][..], args].concat()).join("\n")).unwrap();
        let verified = json(&nostr(&["verify", text(&file), "--json"]).success());
        let analysis = json(&nostr(&["analyze", text(&file), "--json"]).success());
        assert_eq!(verified["valid"], analysis["events"]);
        analysis
    };
    let counts = |analysis: &Value, of: &str| {
        let classes = analysis[of].as_array().unwrap();
        classes.iter().map(|class| class["events"].as_u64().unwrap()).collect::<Vec<_>>()
    };
    let plain = analyzed(&["--count", "3000"]);
    assert_eq!(plain["events"], 3_000);
    // Half of the events have about half of the notes.
    let all = json(&nostr(&["analyze", text(&events), "--json"]).success());
    let (notes, half) = (&counts(&all, "kinds")[0], &counts(&plain, "kinds")[0]);
    assert!((notes * 4 / 10..notes * 6 / 10).contains(half), "{half} of {notes}");
    let kinds = analyzed(&["--count", "500", "--stratify", "kind", "--kind", "0,1,3,7,10002"]);
    assert_eq!(counts(&kinds, "kinds"), [100; 5]);
    let large = analyzed(&["--size", "large,huge"]);
    let sizes = counts(&all, "size_classes");
    assert_eq!(counts(&large, "size_classes"), [0, 0, 0, sizes[3], sizes[4]]);
    let many = analyzed(&["--tag-count", "many", "--count", "50"]);
    assert_eq!(counts(&many, "tag_classes"), [0, 0, 0, 50, 0]);
    let classes = analyzed(&["--stratify", "tags", "--count", "100"]);
    let massive = counts(&all, "tag_classes")[4].min(20);
    assert_eq!(counts(&classes, "tag_classes").iter().sum::<u64>(), 100);
    assert!(counts(&classes, "tag_classes")[4] >= massive);
}

#[test]
fn a_recommendation_ranks_formats_and_shows_the_weights() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(results().as_bytes()).unwrap();
    let path = text(file.path());
    let printed = json(&nostr(&["recommend", path, "--json"]).success());
    assert_eq!(printed["candidates"][0]["format"], "proto-binary");
    let printed = stdout(&nostr(&["recommend", path]).success());
    assert!(printed.contains("validated   40  share of the fastest"), "{printed}");
    assert!(printed.contains("measured 2026-11-01T00:00:00Z on a processor"), "{printed}");
    let tooling = ["--speed", "0", "--size", "0", "--validated", "0"];
    let printed = stdout(&nostr(&[&["recommend", path][..], &tooling[..]].concat()).success());
    let best: Vec<_> = printed.lines().nth(1).unwrap().split_whitespace().take(2).collect();
    assert_eq!(best, ["1", "json"], "{printed}");
    nostr(&[&["recommend", path, "--tooling", "0"][..], &tooling[..]].concat()).code(2);
}

#[test]
fn a_file_without_results_or_without_nostr_rows_is_exit_code_1() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("results.json");
    fs::write(&path, "{}").unwrap();
    let assert = nostr(&["recommend", text(&path)]).code(1);
    assert!(stderr(&assert).contains("not the results of a run"), "{}", stderr(&assert));
    let mut none: Value = serde_json::from_str(&results()).unwrap();
    none["rows"] = Value::Array(Vec::new());
    fs::write(&path, none.to_string()).unwrap();
    let assert = nostr(&["recommend", text(&path)]).code(1);
    assert!(stderr(&assert).contains("no rows of our own codecs"), "{}", stderr(&assert));
}

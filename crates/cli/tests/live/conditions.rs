//! `follow --where`: the selected records, the deletions, and the counts.

use std::collections::BTreeMap;

use serde_json::Value;
use simnet::servers::{Server, Simulation};

use crate::metrics::{address, page_with};
use crate::{Running, file_lines, follow, lines, stderr, with_commits};

/// The records that a consumer of these lines has.
fn records(lines: &[Value]) -> BTreeMap<String, Value> {
    let mut records = BTreeMap::new();
    for line in lines {
        for op in line["ops"].as_array().into_iter().flatten() {
            let text = |value: &Value| value.as_str().unwrap().to_owned();
            let path = format!("{} {} {}", line["did"], text(&op["collection"]), text(&op["rkey"]));
            if op["action"] == "delete" {
                drop(records.remove(&path))
            } else {
                drop(records.insert(path, op["record"].clone()))
            }
        }
    }
    records
}

fn all_lines(sim: &Simulation, args: &[&str]) -> Vec<Value> {
    let dir = tempfile::tempdir().unwrap();
    lines(follow(sim, dir.path(), args))
}

#[test]
fn a_consumer_ends_with_the_records_that_match_whatever_they_were_before() {
    let sim = with_commits(300);
    let all = records(&all_lines(&sim, &["--events", "300", "--workers", "1"]));
    let condition = "has(record.text) && size(record.text) % 2 == 0";
    let dir = tempfile::tempdir().unwrap();
    let folder = dir.path().join("events");
    let to = format!("file:{}", folder.display());
    let args = ["--where", condition, "--metrics", "127.0.0.1:0", "--to", &*to];
    let mut running = Running::start(follow(&sim, dir.path(), &args));
    let address = address(&mut running);
    // Every operation was evaluated when its event is acknowledged.
    let relay = Server::Relay(0);
    let series = format!("cursor{{host=\"{}\"}} {}", sim.url(relay), sim.last_seq(relay));
    let page = page_with(&address, &series);
    assert!(page.contains("wireproof_where_total{result=\"matched\"} "), "{page}");
    assert!(page.contains("wireproof_where_total{result=\"failed\"} 0"), "{page}");
    running.signal("TERM");
    assert_eq!(running.wait().1, Some(0));
    let selected = file_lines(&folder);
    let matches =
        |record: &Value| record["text"].as_str().is_some_and(|text| text.chars().count() % 2 == 0);
    let expected: BTreeMap<_, _> = all.into_iter().filter(|(_, record)| matches(record)).collect();
    assert!(!expected.is_empty());
    assert_eq!(records(&selected), expected);
    let ops = || selected.iter().flat_map(|line| line["ops"].as_array().unwrap());
    for op in ops().filter(|op| op["filtered"] == true) {
        assert_eq!((&op["action"], &op["record"]), (&"delete".into(), &Value::Null), "{op}");
    }
}

#[test]
fn a_mistyped_expression_is_exit_code_2_with_its_place() {
    let (sim, dir) = (with_commits(1), tempfile::tempdir().unwrap());
    for (text, expected) in [
        ("record.text ==", "line 1, column"),
        ("recrod.text == 'a'", "column 1: unknown variable `recrod`"),
        ("1 + 1", "true or false"),
        ("-1 + 1", "true or false"),
    ] {
        let output = follow(&sim, dir.path(), &["--where", text]).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{text}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{text}: {}", stderr(&output));
    }
}

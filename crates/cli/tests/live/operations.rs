//! `follow --ops`: a line an operation, through every way out.

use std::collections::BTreeSet;
use std::io::Write;
use std::process::Stdio;

use serde_json::Value;

use crate::{Running, file_lines, follow, lines, stderr, with_commits};

/// The lines of operations that follow from the line of an event.
fn operations(event: &Value) -> Vec<Value> {
    let ops = event["ops"].as_array().cloned().unwrap_or_default();
    let line = |(index, op): (usize, &Value)| {
        let mut line = event.clone();
        let keys = line.as_object_mut().unwrap();
        keys.remove("ops");
        keys.extend(op.as_object().unwrap().clone());
        keys.insert("kind".into(), "operation".into());
        keys.insert("index".into(), index.into());
        keys.insert("last".into(), (index + 1 == ops.len()).into());
        line
    };
    ops.iter().enumerate().map(line).collect()
}

#[test]
fn the_lines_of_standard_output_are_the_operations_of_its_events() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let whole = lines(follow(&sim, &dir.path().join("whole"), &["--events", "40"]));
    let flat = lines(follow(&sim, &dir.path().join("flat"), &["--events", "40", "--ops"]));
    let by_id = |mut lines: Vec<Value>| {
        lines.sort_by_key(|line| (line["seq"].as_u64(), line["index"].as_u64()));
        lines
    };
    let expected: Vec<Value> = whole.iter().flat_map(operations).collect();
    assert!(expected.len() >= 40);
    assert_eq!(by_id(flat), by_id(expected));
}

#[test]
fn files_have_a_line_an_operation_with_its_own_id_and_tables_do_not_change() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let (did, folder) = (sim.account(1).did, dir.path().join("events"));
    let to = format!("file://{}", folder.display());
    let tables = format!("sqlite:{}", dir.path().join("posts.db").display());
    let args = ["--dids", &did, "--backfill", "--ops", "--events", "1", "--to", &to, "--to"];
    let output = follow(&sim, dir.path(), &[&args[..], &[&tables]].concat()).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let lines = file_lines(&folder);
    let operations: Vec<&Value> = lines.iter().filter(|line| line["kind"] == "operation").collect();
    let ids: BTreeSet<&str> = lines.iter().map(|line| line["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), lines.len());
    for line in &operations {
        let path =
            format!("/{}/{}", line["collection"].as_str().unwrap(), line["rkey"].as_str().unwrap());
        assert!(line["id"].as_str().unwrap().ends_with(&path), "{line}");
    }
    let records = sim.expected_accounts()[1].records.len();
    let history = operations.iter().filter(|line| line["live"] == false).count();
    assert_eq!(history, records);
    let lasts = operations.iter().filter(|line| line["live"] == false && line["last"] == true);
    assert_eq!(lasts.count(), 1);
    let file = rusqlite::Connection::open(dir.path().join("posts.db")).unwrap();
    let count: i64 = file.query_row("SELECT count(*) FROM record", [], |row| row.get(0)).unwrap();
    assert_eq!(usize::try_from(count), Ok(records));
}

#[test]
fn an_event_is_acknowledged_with_the_last_of_its_operations() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let (did, records) = (sim.account(1).did, sim.expected_accounts()[1].records.len());
    let start = || {
        let args = ["--dids", &did, "--backfill", "--ops", "--ack-stdin"];
        let mut command = follow(&sim, dir.path(), &args);
        command.stdin(Stdio::piped());
        Running::start(command)
    };
    let id = |line: &Value| line["id"].as_str().unwrap().to_owned();
    // All but the last operation of the repository.
    let mut first = start();
    let printed = first.take(records);
    assert!(printed.iter().all(|line| line["kind"] == "operation" && line["live"] == false));
    let mut input = first.child.stdin.take().unwrap();
    writeln!(input, "{}", id(&printed[records - 2])).unwrap();
    drop(input);
    assert_eq!(first.wait().1, Some(4));
    let mut second = start();
    let again = second.take(records);
    assert_eq!(
        again.iter().map(id).collect::<Vec<_>>(),
        printed.iter().map(id).collect::<Vec<_>>()
    );
    let mut input = second.child.stdin.take().unwrap();
    writeln!(input, "{}", id(&again[records - 1])).unwrap();
    drop(input);
    second.wait();
    let mut third = start();
    sim.write_commit_as(1);
    assert_ne!(id(&third.take(1)[0]), id(&printed[0]));
}

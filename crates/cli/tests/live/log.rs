//! Levels and forms of the messages on standard error.

use std::io::Read;

use serde_json::Value;
use simnet::servers::{Fault, FaultSchedule, Server};

use crate::{Running, follow, quiet, stderr, with_commits};

/// Standard error of a run of five events.
fn messages(args: &[&str]) -> String {
    let (sim, dir) = (with_commits(5), tempfile::tempdir().unwrap());
    let mut command = follow(&sim, dir.path(), &["--events", "5"]);
    let output = command.args(args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert_eq!(crate::parsed(&output.stdout).len(), 5);
    stderr(&output)
}

#[test]
fn quiet_leaves_warnings_and_twice_nothing_of_a_run_without_errors() {
    let usual = messages(&[]);
    assert!(usual.contains("connected") && usual.contains("warning: the keys"), "{usual}");
    let warnings = messages(&["-q"]);
    assert!(
        !warnings.contains("connected") && warnings.contains("warning: the keys"),
        "{warnings}"
    );
    assert_eq!(messages(&["-qq"]), "");
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let failed = follow(&sim, dir.path(), &["-qq", "--dids", "@/nonexistent"]).output().unwrap();
    assert_eq!(failed.status.code(), Some(4));
    assert!(stderr(&failed).contains("/nonexistent"), "{}", stderr(&failed));
    let both = follow(&sim, dir.path(), &["-q", "-v"]).output().unwrap();
    assert_eq!(both.status.code(), Some(2));
}

#[test]
fn every_message_is_an_object_with_time_level_and_message() {
    let printed = messages(&["--log", "json"]);
    let lines: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let levels: Vec<_> = lines.iter().map(|line| line["level"].as_str().unwrap()).collect();
    assert!(levels.contains(&"warning") && levels.contains(&"info"), "{printed}");
    for line in &lines {
        let time = line["time"].as_str().unwrap();
        assert!(atproto::syntax::Datetime::parse(time).is_ok(), "{time}");
        assert!(!line["message"].as_str().unwrap().is_empty());
    }
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let args = ["--log", "json", "--dids", "@/nonexistent"];
    let failed = stderr(&follow(&sim, dir.path(), &args).output().unwrap());
    let last: Value = serde_json::from_str(failed.lines().last().unwrap()).unwrap();
    assert_eq!(last["level"], "error");
    // The environment sets the form too.
    let mut command = follow(&sim, dir.path(), &["--dids", "@/nonexistent"]);
    assert!(stderr(&command.env("WIREPROOF_LOG", "json").output().unwrap()).starts_with('{'));
}

#[test]
fn verbose_prints_each_warning_that_is_else_printed_once_a_minute() {
    let count = |args: &[&str]| {
        let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
        let relay = Server::Relay(0);
        sim.faults().enable(relay, Fault::RepeatedSeq, FaultSchedule::ALWAYS);
        let mut running = Running::start(follow(&sim, dir.path(), args));
        running.take(20);
        running.signal("TERM");
        let mut printed = String::new();
        running.errors.read_to_string(&mut printed).unwrap();
        assert_eq!(running.wait().1, Some(0), "SIGTERM is an orderly end");
        printed.lines().filter(|line| line.contains("again with the same bytes")).count()
    };
    assert!(count(&[]) <= 2);
    assert!(count(&["-v"]) >= 15);
}

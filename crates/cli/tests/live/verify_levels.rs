//! `follow --verify-against`: the proofs, messages and refusals of every level.

use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;
use simnet::servers::{Server, Simulation};

use crate::lines::serve;
use crate::metrics::{address, page_with};
use crate::{Running, file_lines, follow, lines, quiet, stderr, with_commits};

/// The verdict, the code and the level of the last event of a case of the hostile set.
fn last_of(case: &str, level: Option<&str>) -> [Value; 3] {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    serve(&sim, case);
    let count = sim.sent_count(Server::Relay(0)).to_string();
    let mut args = vec!["--events", &*count];
    args.extend(level.iter().flat_map(|level| ["--verify-against", level]));
    let last = lines(follow(&sim, dir.path(), &args)).pop().unwrap();
    assert_eq!(last["ops"].is_array(), last["verdict"] != "refused", "{last}");
    ["verdict", "code", "verified_against"].map(|key| last[key].clone())
}

#[test]
fn each_level_refuses_what_it_proves_and_says_what_it_does_not() {
    let signed = ["verified", "verified/unproved", "signature"];
    let unasked = ["not-asked", "not-asked", "none"];
    for operation in ["event/phantom-create", "event/create-left-out"] {
        let refused = last_of(operation, None);
        assert_eq!((&refused[0], &refused[2]), (&"refused".into(), &Value::Null), "{refused:?}");
        assert_eq!(last_of(operation, Some("full")), refused);
        assert_eq!(last_of(operation, Some("signature")), signed);
        assert_eq!(last_of(operation, Some("none")), unasked);
    }
    let stranger = "signature/event-key-of-a-stranger";
    assert_eq!(last_of(stranger, None)[1], "signature/wrong");
    let refused = ["refused", "signature/wrong", "signature"];
    assert_eq!(last_of(stranger, Some("signature")), refused);
    assert_eq!(last_of(stranger, Some("none")), unasked);
}

#[test]
fn the_default_lines_have_no_level_and_a_run_with_less_warns_and_counts_it() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    for (level, mark) in [("full", None), ("signature", Some("signature")), ("none", Some("none"))]
    {
        let args = ["--verify-against", level, "--metrics", "127.0.0.1:0"];
        let mut running = Running::start(follow(&sim, &dir.path().join(level), &args));
        if let Some(mark) = mark {
            running.wait_for_stderr(&format!("--verify-against {mark}"));
        }
        let address = address(&mut running);
        page_with(&address, &format!("wireproof_verified_against{{level=\"{level}\"}} 1"));
        for line in running.take(20) {
            assert_eq!(line["verified_against"].as_str(), mark, "{line}");
        }
        running.interrupt();
    }
}

/// The records of an account in tables of this run.
fn records_in_tables(sim: &Simulation, dir: &Path, level: &str) -> Vec<(String, i64)> {
    let (tables, count) = (dir.join("tables.db"), sim.sent_count(Server::Relay(0)).to_string());
    let to = format!("sqlite:{}", tables.display());
    let args = ["--to", &*to, "--verify-against", level, "--events", &*count];
    let output = follow(sim, dir, &args).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let tables = Connection::open(tables).unwrap();
    let select = "SELECT did || collection || rkey || cid, complete FROM record JOIN account USING (did) ORDER BY 1";
    let mut rows = tables.prepare(select).unwrap();
    let rows = rows.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

#[test]
fn tables_have_the_records_of_each_level_and_call_no_account_complete() {
    let (sim, dir) = (with_commits(60), tempfile::tempdir().unwrap());
    let of = |level: &str| records_in_tables(&sim, &dir.path().join(level), level);
    let full = of("full");
    assert!(!full.is_empty());
    for level in ["signature", "none"] {
        assert_eq!(of(level), full, "{level}");
    }
}

#[test]
fn an_outbox_takes_events_of_one_level_only() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    let folder = dir.path().join("events");
    let to = format!("file:{}", folder.display());
    let run = |level: &str| {
        let args = ["--to", &*to, "--verify-against", level, "--events", "10", "--ops"];
        follow(&sim, dir.path(), &args).output().unwrap()
    };
    assert!(run("none").status.success());
    let lines = file_lines(&folder);
    assert!(lines.iter().all(|line| line["kind"] == "operation"), "{lines:?}");
    assert!(lines.iter().all(|line| line["verified_against"] == "none"));
    for level in ["full", "signature"] {
        let output = run(level);
        assert_eq!(output.status.code(), Some(2));
        assert!(stderr(&output).contains("are verified against none"), "{}", stderr(&output));
    }
    assert!(run("none").status.success());
}

#[test]
fn lines_of_signatures_alone_prove_in_full_by_their_proofs() {
    let (sim, dir) = (with_commits(20), tempfile::tempdir().unwrap());
    crate::line_proofs::write_keys(&sim, &dir.path().join("keys.json"));
    let args = ["--verify-against", "signature", "--proof", "blocks", "--events", "20"];
    let signed = lines(follow(&sim, &dir.path().join("signed"), &args));
    assert!(signed.iter().all(|line| line["code"] == "verified/unproved"), "{signed:?}");
    crate::line_proofs::assert_proved(&signed, dir.path());
    let args = ["--verify-against", "none", "--events", "20"];
    let unverified = lines(follow(&sim, &dir.path().join("unverified"), &args));
    let (output, report) = crate::line_proofs::verify(&unverified, dir.path());
    assert_eq!((output.status.code(), &report["proved"]), (Some(0), &0.into()));
    assert_eq!(report["unproved"], 20, "they claim nothing: {report}");
}

#[test]
fn options_that_need_more_proof_are_refused_with_the_reason() {
    let (sim, dir) = (with_commits(1), tempfile::tempdir().unwrap());
    let (did, host) = (sim.account(0).did, sim.url(Server::Pds(0)));
    let to = format!("file:{}", dir.path().join("events").display());
    let none = ["--verify-against", "none"];
    for (args, expected) in [
        (&["--resync"][..], "--resync needs"),
        (&["--to", &to, "--backfill", "--dids", &did], "--backfill needs"),
        (&["--to", &to, "--all-from", &host], "--all-from needs"),
        (&["--proof", "frame"], "--proof needs"),
        (&["--strict-records"], "--strict-records needs"),
        (&["--pds"], "--pds needs"),
    ] {
        let output = follow(&sim, dir.path(), &[&none, args].concat()).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
    for (args, expected) in [
        (&["--verify-against", "full", "--no-verify"][..], "--no-verify"),
        (&["--verify-against", "signature", "--jetstream"], "are not signed"),
        (&["--verify-against", "some"], "[possible values: none, signature, full]"),
    ] {
        let output = follow(&sim, dir.path(), args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(expected), "{args:?}: {}", stderr(&output));
    }
    assert_eq!(sim.connection_count(), 0);
}

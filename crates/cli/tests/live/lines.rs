//! What does a line say?

use serde_json::Value;
use simnet::servers::{AccountStatus, Fault, FaultSchedule, Server};

use crate::running::{Running, follow, lines, quiet, with_commits};

#[test]
fn a_commit_says_who_changed_what_and_that_it_is_proved() {
    let (sim, dir) = (with_commits(40), tempfile::tempdir().unwrap());
    let printed = lines(follow(&sim, dir.path(), &["--events", "40"]));
    assert!(printed.len() >= 40);
    for line in &printed {
        assert_eq!(line["host"], sim.url(Server::Relay(0)));
        assert_eq!(
            (&line["kind"], &line["verdict"]),
            (&"commit".into(), &"verified".into()),
            "{line}"
        );
        let fields = ["did", "time", "rev", "commit", "code"];
        assert!(fields.iter().all(|field| line[*field].is_string()), "{line}");
        for op in line["ops"].as_array().unwrap() {
            let fields = ["action", "collection", "rkey"];
            assert!(fields.iter().all(|field| op[*field].is_string()), "{op}");
            let is_there = op["action"] != "delete";
            assert_eq!(
                (op["cid"].is_string(), op["record"].is_object()),
                (is_there, is_there),
                "{op}"
            );
        }
    }
    let is_whole = |op: &Value| op["record"]["$type"] == op["collection"];
    assert!(printed.iter().any(|line| is_whole(&line["ops"][0])));
}

#[test]
fn what_is_signed_by_another_key_is_refused_without_its_records() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.faults().enable(Server::Plc, Fault::WrongKey, FaultSchedule::ALWAYS);
    sim.write_commits(5);
    let printed = lines(follow(&sim, dir.path(), &["--events", "5"]));
    for line in &printed {
        assert_eq!(
            (&line["verdict"], &line["code"]),
            (&"refused".into(), &"signature/wrong".into())
        );
        assert!(line["reason"].is_string() && line.get("ops").is_none(), "{line}");
    }
    assert_eq!(sim.faults().unfired(), []);
}

#[test]
fn without_the_directory_it_says_that_the_key_is_unknown_and_why() {
    let (sim, dir) = (with_commits(3), tempfile::tempdir().unwrap());
    sim.stop_server(Server::Plc).unwrap();
    let printed = lines(follow(&sim, dir.path(), &["--events", "3"]));
    for line in &printed {
        assert_eq!(line["verdict"], "unknown-key", "{line}");
        assert!(line["reason"].is_string() && line.get("ops").is_none(), "{line}");
    }
}

#[test]
fn nobody_is_asked_for_what_is_not_to_be_judged() {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    let printed = lines(follow(&sim, dir.path(), &["--events", "10", "--no-verify"]));
    assert!(printed.iter().all(|line| line["verdict"] == "not-asked" && line["ops"].is_array()));
    assert!(sim.request_counts(Server::Plc).is_empty());
}

#[test]
fn events_of_every_kind_have_a_line() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.write_commit_as(0);
    sim.change_handle(0, "renamed.test");
    sim.send_sync(1);
    sim.set_account_status(2, AccountStatus::Deactivated);
    sim.write_commits(1);
    let count = sim.sent_count(Server::Relay(0)).to_string();
    let printed = lines(follow(&sim, dir.path(), &["--events", &count]));
    let of = |kind: &str| printed.iter().find(|line| line["kind"] == kind).unwrap().clone();
    assert_eq!(of("identity")["handle"], "renamed.test");
    assert_eq!(
        (&of("account")["active"], &of("account")["status"]),
        (&false.into(), &"deactivated".into())
    );
    assert_eq!(
        (&of("sync")["verdict"], &of("identity")["verdict"]),
        (&"verified".into(), &"unchecked".into())
    );
    assert!(of("commit")["rev"].is_string());
}

#[test]
fn only_what_was_asked_for_is_printed_and_all_of_it_is_acknowledged() {
    let (sim, dir) = (with_commits(60), tempfile::tempdir().unwrap());
    let did = sim.account(3).did;
    let all = lines(follow(&sim, &dir.path().join("all"), &["--events", "60"]));
    let of_account = all.iter().filter(|line| line["did"] == *did).count();
    let count = of_account.to_string();
    let args = ["--events", &count, "--dids", &did];
    let some = lines(follow(&sim, dir.path(), &args));
    assert!(some.iter().all(|line| line["did"] == *did) && some.len() == of_account);

    let likes = ["--collections", "app.bsky.feed.like", "--state", "likes"];
    let mut command = follow(&sim, dir.path(), &[]);
    command.current_dir(dir.path()).args(&likes[..2]);
    let mut running = Running::start(command);
    // Behind what was handled, nothing is left out.
    sim.write_commits(30);
    for line in running.take(5) {
        let ops = line["ops"].as_array().unwrap();
        assert!(!ops.is_empty() && ops.iter().all(|op| op["collection"] == "app.bsky.feed.like"));
    }
}

#[test]
fn frames_that_cannot_be_read_are_printed_as_they_came() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    sim.faults().enable(Server::Relay(0), Fault::GarbageFrame, FaultSchedule::ONCE);
    sim.write_commits(4);
    let mut running = Running::start(follow(&sim, dir.path(), &[]));
    let printed = running.take(5);
    let garbage = printed.iter().find(|line| line["kind"] == "undecodable").unwrap();
    assert_eq!(garbage["verdict"], "refused");
    assert!(garbage["frame"]["$bytes"].is_string() && garbage["reason"].is_string(), "{garbage}");
}

//! Parts of the command that are built with a feature only: without it each says how to get it, and their help is the same.

use crate::{run, text};

/// The message of a command that needs a feature.
#[track_caller]
fn message(args: &[&str]) -> String {
    let assert = run(args).failure().code(2);
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[track_caller]
fn assert_names(message: &str, feature: &str) {
    assert!(message.contains(&format!("needs the feature `{feature}`")), "{message}");
    let install = format!("cargo install --locked --path crates/cli --features {feature}");
    assert!(message.contains(&install), "{message}");
}

#[test]
fn a_part_that_is_not_built_names_its_feature_and_the_command_that_builds_it() {
    let dir = tempfile::tempdir().unwrap();
    let database = dir.path().join("strfry-db");
    std::fs::create_dir(&database).unwrap();
    std::fs::write(database.join("data.mdb"), "").unwrap();
    let events = dir.path().join("events.jsonl");
    std::fs::write(&events, "").unwrap();
    let out = dir.path().join("out");
    let parts: [(bool, &str, &[&str]); 8] = [
        (cfg!(feature = "query"), "query", &["archive", "query", "archive", "SELECT 1"]),
        (cfg!(feature = "query"), "query", &["bench", "archive", "--operations", "1"]),
        (cfg!(feature = "where"), "where", &["follow", "--where", "live"]),
        (cfg!(feature = "kafka"), "kafka", &["follow", "--to", "kafka://localhost/events"]),
        (
            cfg!(feature = "nats"),
            "nats",
            &["nostr", "follow", "wss://a.test", "--to", "nats://a/b"],
        ),
        (cfg!(feature = "object-stores"), "object-stores", &["archive", "stats", "s3://bucket/a"]),
        (cfg!(feature = "nostr-lmdb"), "nostr-lmdb", &["nostr", "verify", text(&database)]),
        (
            cfg!(feature = "nostr-lmdb"),
            "nostr-lmdb",
            &["nostr", "convert", text(&events), "--to", "strfry-lmdb", "-o", text(&out)],
        ),
    ];
    for (_, feature, args) in parts.iter().filter(|(is_built, ..)| !is_built) {
        assert_names(&message(args), feature);
    }
}

#[test]
fn the_help_of_a_part_does_not_depend_on_its_feature() {
    for args in [&["archive", "query", "--help"][..], &["bench", "archive", "--help"]] {
        run(args).success();
    }
    for (args, option) in [
        (&["follow", "--help"][..], "--where"),
        (&["follow", "--help"], "kafka://"),
        (&["archive", "query", "--help"], "--lexicon"),
        (&["bench", "archive", "--help"], "--operations"),
        (&["nostr", "convert", "--help"], "strfry-lmdb"),
    ] {
        let output = run(args).success();
        let help = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
        assert!(help.contains(option), "{args:?}: {option}");
    }
}

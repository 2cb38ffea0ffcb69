//! Parts of the command that are programs of their own, or built with a feature only: without it they say how to get it, and their
//! help is the same.

use std::path::{Path, PathBuf};

use crate::{run, text};

/// The message of a command that needs a feature.
#[track_caller]
fn message(args: &[&str]) -> String {
    let assert = run(args).failure().code(2);
    String::from_utf8(assert.get_output().stderr.clone()).unwrap()
}

#[track_caller]
fn assert_names(message: &str, folder: &str, feature: &str) {
    assert!(message.contains(&format!("needs the feature `{feature}`")), "{message}");
    let install = format!("cargo install --locked --path crates/{folder} --features {feature}");
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
    let all = cfg!(feature = "full");
    let parts: [(bool, [&str; 2], &[&str]); 8] = [
        (all, ["archive-cli", "query"], &["archive", "query", "archive", "SELECT 1"]),
        (all, ["bench-cli", "archive"], &["bench", "archive", "--operations", "1"]),
        (cfg!(feature = "where"), ["cli", "where"], &["follow", "--where", "live"]),
        (
            cfg!(feature = "kafka"),
            ["cli", "kafka"],
            &["follow", "--to", "kafka://localhost/events"],
        ),
        (
            cfg!(feature = "nats"),
            ["cli", "nats"],
            &["nostr", "follow", "wss://a.test", "--to", "nats://a/b"],
        ),
        (all, ["archive-cli", "object-stores"], &["archive", "stats", "s3://bucket/a"]),
        (
            cfg!(feature = "nostr-lmdb"),
            ["cli", "nostr-lmdb"],
            &["nostr", "verify", text(&database)],
        ),
        (
            cfg!(feature = "nostr-lmdb"),
            ["cli", "nostr-lmdb"],
            &["nostr", "convert", text(&events), "--to", "strfry-lmdb", "-o", text(&out)],
        ),
    ];
    for (_, [folder, feature], args) in parts.iter().filter(|(is_built, ..)| !is_built) {
        assert_names(&message(args), folder, feature);
    }
}

#[test]
fn the_help_of_a_part_does_not_depend_on_its_feature() {
    for (args, option) in [
        (&["follow", "--help"][..], "--where"),
        (&["follow", "--help"], "kafka://"),
        (&["archive", "query", "--help"], "--lexicon"),
        (&["bench", "archive", "--help"], "--operations"),
        (&["help", "bench", "archive"], "--operations"),
        (&["help"], "backfill"),
        (&["nostr", "convert", "--help"], "strfry-lmdb"),
    ] {
        let output = run(args).success();
        let help = String::from_utf8_lossy(&output.get_output().stdout).into_owned();
        assert!(help.contains(option), "{args:?}: {option}");
    }
}

/// `wireproof` in a folder without the other programs.
fn alone_in(folder: &Path) -> PathBuf {
    let alone = folder.join("wireproof");
    crate::link(env!("CARGO_BIN_EXE_wireproof"), &alone);
    alone
}

#[test]
fn a_program_that_is_not_installed_is_named_with_the_command_that_installs_it() {
    let dir = tempfile::tempdir().unwrap();
    let alone = alone_in(dir.path());
    for (args, program, folder) in [
        (["archive", "verify"], "wireproof-archive", "crates/archive-cli"),
        (["bench", "decode"], "wireproof-bench", "crates/bench-cli"),
    ] {
        let output = std::process::Command::new(&alone)
            .args(args)
            .env("PATH", "/nonexistent:.")
            .current_dir(dir.path())
            .output()
            .unwrap();
        let message = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(2), "{message}");
        let install = format!("cargo install --locked --path {folder}");
        assert!(message.contains(program) && message.contains(&install), "{message}");
        assert_eq!(message.trim_end().lines().count(), 1, "{message}");
    }
}

#[test]
fn a_program_on_the_path_gets_the_arguments_and_its_exit_code_is_that_of_the_command() {
    let dir = tempfile::tempdir().unwrap();
    let (alone, folder) = (alone_in(dir.path()), dir.path().join("bin"));
    std::fs::create_dir(&folder).unwrap();
    let other = folder.join("wireproof-archive");
    std::fs::write(&other, "#!/bin/sh\nprintf '%s,' \"$@\"\nexit 3\n").unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&other, executable).unwrap();
    let output = std::process::Command::new(&alone)
        .args(["--color", "never", "archive", "verify", "a b", ""])
        .env("PATH", format!("{}:/bin:/usr/bin", folder.display()))
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3));
    assert_eq!(String::from_utf8_lossy(&output.stdout), "--color,never,archive,verify,a b,,");
}

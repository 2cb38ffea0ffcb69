//! Precedence of flags, environment and files, and `config show`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use tempfile::TempDir;

/// The command in its own folder, with a configuration folder in it.
fn wireproof(dir: &TempDir, args: &[&str]) -> Command {
    let mut command = crate::command(args);
    command.current_dir(dir).env("XDG_CONFIG_HOME", dir.path().join("xdg"));
    command
}

fn in_xdg(dir: &TempDir, text: &str) {
    let folder = dir.path().join("xdg").join("wireproof");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("wireproof.toml"), text).unwrap();
}

fn in_folder(dir: &Path, text: &str) {
    fs::write(dir.join("wireproof.toml"), text).unwrap();
}

/// The line of `config show` for this option.
fn shown(mut command: Command, name: &str) -> String {
    let output = command.assert().success().get_output().stdout.clone();
    let text = String::from_utf8(output).unwrap();
    let is_it = |line: &&str| line.trim_start_matches("# ").starts_with(name);
    text.lines().find(is_it).unwrap_or_else(|| panic!("{name} is not in {text}")).to_owned()
}

#[test]
fn the_environment_takes_precedence_over_the_folders_file_and_that_over_the_users() {
    let dir = tempfile::tempdir().unwrap();
    let show = || wireproof(&dir, &["config", "show", "--origin"]);
    assert_eq!(shown(show(), "work-dir"), "# work-dir is not set");
    in_xdg(&dir, "[bench]\nwork-dir = \"of the user\"\nrunners = \"r\"\n");
    let line = shown(show(), "work-dir");
    assert!(
        line.starts_with("work-dir = \"of the user\"  # from ") && line.contains("xdg"),
        "{line}"
    );
    in_folder(dir.path(), "work-dir = \"of the folder\"\n");
    let line = shown(show(), "work-dir");
    assert_eq!(line, "work-dir = \"of the folder\"  # from wireproof.toml");
    assert!(shown(show(), "runners").contains("xdg"));
    let mut command = show();
    command.env("WIREPROOF_BENCH_WORK_DIR", "of the environment");
    let line = shown(command, "work-dir");
    let origin = "# from the environment: WIREPROOF_BENCH_WORK_DIR";
    assert_eq!(line, format!("work-dir = \"of the environment\"  {origin}"));
}

#[test]
fn the_output_of_show_is_a_file_with_the_same_values() {
    let dir = tempfile::tempdir().unwrap();
    in_xdg(&dir, "[bench]\nwork-dir = \"a \\\"b\\\" \\\\ c\"\n");
    let show = |dir: &TempDir| {
        wireproof(dir, &["config", "show"]).assert().success().get_output().stdout.clone()
    };
    let (text, other) = (show(&dir), tempfile::tempdir().unwrap());
    fs::write(other.path().join("wireproof.toml"), &text).unwrap();
    assert_eq!(show(&other), text);
}

#[test]
fn a_flag_takes_precedence_over_the_environment_and_a_file() {
    let dir = tempfile::tempdir().unwrap();
    in_folder(dir.path(), "[bench]\ncorpus = \"of the file\"\n");
    let refused = |mut command: Command, path: &str| {
        let assert = command.assert().failure();
        let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
        assert!(message.contains(path), "{message}");
    };
    let bench = ["bench", "decode", "--peers", "wireproof"];
    refused(wireproof(&dir, &bench), "of the file");
    let mut command = wireproof(&dir, &bench);
    command.env("WIREPROOF_BENCH_CORPUS", "of the environment");
    refused(command, "of the environment");
    let mut command = wireproof(&dir, &[&bench[..], &["--corpus", "of the flag"]].concat());
    command.env("WIREPROOF_BENCH_CORPUS", "of the environment");
    refused(command, "of the flag");
}

#[test]
fn a_file_with_an_unknown_option_is_refused_with_its_name() {
    let dir = tempfile::tempdir().unwrap();
    in_folder(dir.path(), "[bench]\nwork_dir = \"x\"\n");
    let assert = wireproof(&dir, &["config", "show"]).assert().code(2);
    let message = String::from_utf8_lossy(&assert.get_output().stderr).into_owned();
    assert!(message.contains("wireproof.toml") && message.contains("`work_dir`"), "{message}");
}

//! Precedence of flags, environment and files, and `config show`.

use std::fs;
use std::path::Path;

use assert_cmd::Command;
use simnet::servers::{Server, Simulation, Spec};
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
    assert_eq!(shown(show(), "corpus"), "# corpus is not set");
    in_xdg(&dir, "[bench]\ncorpus = \"of the user\"\nrunners = \"r\"\n");
    let line = shown(show(), "corpus");
    assert!(
        line.starts_with("corpus = \"of the user\"  # from ") && line.contains("xdg"),
        "{line}"
    );
    in_folder(dir.path(), "corpus = \"of the folder\"\n");
    let line = shown(show(), "corpus");
    assert_eq!(line, "corpus = \"of the folder\"  # from wireproof.toml");
    assert!(shown(show(), "runners").contains("xdg"));
    let mut command = show();
    command.env("WIREPROOF_BENCH_CORPUS", "of the environment");
    let line = shown(command, "corpus");
    let origin = "# from the environment: WIREPROOF_BENCH_CORPUS";
    assert_eq!(line, format!("corpus = \"of the environment\"  {origin}"));
}

#[test]
fn settings_explains_every_option_for_experts_in_a_file_that_can_be_used() {
    let dir = tempfile::tempdir().unwrap();
    let settings = |command: &[&str]| {
        let args = [&["config", "settings"], command].concat();
        let output = wireproof(&dir, &args).assert().success().get_output().stdout.clone();
        String::from_utf8(output).unwrap()
    };
    let text = settings(&["follow"]);
    for part in ["[follow]", "# outbox-bytes = 1073741824", "# Environment: WIREPROOF_OUTBOX_BYTES"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Every option that has a default can be set as it is shown.
    let is_setting = |line: &&str| line.contains(" = ") && !line.ends_with('…');
    let set = |line: &str| line.trim_start_matches("# ").to_owned();
    let lines: Vec<String> = text.lines().filter(is_setting).map(set).collect();
    assert!(lines.len() > 10, "{lines:?}");
    in_xdg(&dir, &format!("[follow]\n{}\n", lines.join("\n")));
    let show = wireproof(&dir, &["config", "show", "--origin"]).assert().success();
    let show = String::from_utf8(show.get_output().stdout.clone()).unwrap();
    let (_, of_follow) = show.split_once("[follow]\n").unwrap();
    let line = of_follow.lines().find(|line| line.starts_with("outbox-bytes = ")).unwrap();
    assert!(line.contains("xdg"), "{line}");

    let help =
        wireproof(&dir, &["follow", "--help"]).assert().success().get_output().stdout.clone();
    let help = String::from_utf8(help).unwrap();
    let options = help.lines().filter(|line| {
        line.starts_with("  -") || line.starts_with("      --") && !line.starts_with("          ")
    });
    let count = options.count();
    assert!((30..=40).contains(&count), "{count} options: {help}");
    for name in ["outbox-bytes", "gather-ms", "first-contact-seconds"] {
        assert!(help.contains(name) && !help.contains(&format!("--{name}")), "{name}: {help}");
    }
    let unknown = wireproof(&dir, &["config", "settings", "folow"]).assert().code(2);
    let error = String::from_utf8(unknown.get_output().stderr.clone()).unwrap();
    assert!(error.contains("unknown command `folow`"), "{error}");
}

#[test]
fn the_output_of_show_is_a_file_with_the_same_values() {
    let dir = tempfile::tempdir().unwrap();
    in_xdg(&dir, "[bench]\nwork-dir = \"a \\\"b\\\" \\\\ c\"\n");
    let show = |dir: &TempDir, args: &[&str]| {
        let args = [args, &["config", "show"]].concat();
        wireproof(dir, &args).assert().success().get_output().stdout.clone()
    };
    let (text, other) = (show(&dir, &[]), tempfile::tempdir().unwrap());
    fs::write(other.path().join("mine.toml"), &text).unwrap();
    assert_eq!(show(&other, &["--config", "mine.toml"]), text);
}

/// An account that only the directory of this network knows, and a configuration that trusts it.
fn attacker() -> (Simulation, String, String) {
    let sim = Simulation::start(Spec { accounts: 1, records: 4, ..Spec::default() }).unwrap();
    let (plc, port) = (sim.url(Server::Plc), sim.port(Server::Pds(0)));
    let text = format!("[verify]\nplc = \"{plc}\"\ndevelopment-port = {port}\n");
    let did = sim.account(0).did.clone();
    (sim, text, did.to_string())
}

#[test]
fn a_file_in_an_archive_folder_cannot_choose_the_directory_that_a_proof_trusts() {
    let (dir, (attacker, text, did)) = (tempfile::tempdir().unwrap(), attacker());
    in_folder(dir.path(), &text);
    let refused = wireproof(&dir, &["verify", &did]).assert().code(2);
    let message = crate::stderr(&refused);
    for part in ["wireproof.toml: `", "stranger", "--config wireproof.toml"] {
        assert!(message.contains(part), "{message}");
    }
    assert!(attacker.request_counts(Server::Plc).is_empty(), "the directory was asked");

    // The operator's own word for it is another matter, and the report says whom it trusts.
    let trusted = ["--config", "wireproof.toml", "verify", &did];
    let verified = wireproof(&dir, &trusted).assert().success();
    let plc = attacker.url(Server::Plc);
    assert!(crate::stdout(&verified).contains(&format!("plc      {plc}")));
    assert!(
        crate::stderr(&verified)
            .contains(&format!("warning: the keys of did:plc accounts come from {plc}"))
    );
    let mut by_environment = wireproof(&dir, &["resolve", &did, "--json"]);
    by_environment.env("WIREPROOF_CONFIG", "other.toml");
    fs::write(dir.path().join("other.toml"), text.replace("verify", "resolve")).unwrap();
    assert_eq!(crate::json(&by_environment.assert().success())["plc"], *plc);
}

#[test]
fn a_file_in_the_current_folder_sets_nothing_that_is_trusted_run_read_or_written() {
    for text in [
        "plc = \"https://plc.example.com\"",
        "development = true",
        "development-port = 1",
        "development-trust-only = \"ca.pem\"",
        "[follow]\nverify = false",
        "[follow]\njetstream = 2",
        "[follow]\nstate = \"state\"",
        "[follow]\nmetrics = \"127.0.0.1:1\"",
        "[capture]\nout = \"/tmp\"",
        "[bench]\nrunners = \"runners\"",
        "[bench]\nwork-dir = \"work\"",
    ] {
        let dir = tempfile::tempdir().unwrap();
        in_folder(dir.path(), text);
        wireproof(&dir, &["config", "show"]).assert().code(2);
        let origin = ["config", "show", "--origin", "--config", "wireproof.toml"];
        let shown = crate::stdout(&wireproof(&dir, &origin).assert().success());
        assert!(shown.contains("# from wireproof.toml"), "{text}: {shown}");
        in_xdg(&dir, text);
        fs::remove_file(dir.path().join("wireproof.toml")).unwrap();
        wireproof(&dir, &["config", "show"]).assert().success();
    }
}

#[test]
fn the_configuration_folder_is_the_users_also_as_the_current_folder() {
    let dir = tempfile::tempdir().unwrap();
    in_xdg(&dir, "plc = \"https://plc.example.com\"");
    let mut command = wireproof(&dir, &["config", "show"]);
    command.current_dir(dir.path().join("xdg").join("wireproof")).assert().success();
}

#[test]
fn a_file_named_by_config_must_exist_and_no_file_names_another() {
    let dir = tempfile::tempdir().unwrap();
    wireproof(&dir, &["--config", "mine.toml", "config", "show"]).assert().code(4);
    fs::write(dir.path().join("mine.toml"), "config = \"other.toml\"").unwrap();
    let refused = wireproof(&dir, &["--config", "mine.toml", "config", "show"]).assert().code(2);
    assert!(crate::stderr(&refused).contains("`config`"), "{}", crate::stderr(&refused));
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
    // Another run may have locked the checkout's folder.
    let work_dir = dir.path().display().to_string();
    let bench = ["bench", "decode", "--peers", "wireproof", "--work-dir", &work_dir];
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

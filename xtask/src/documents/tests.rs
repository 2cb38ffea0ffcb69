//! Tests of the runner, and of the documents themselves.

use std::path::Path;

use super::*;

#[test]
fn commands_are_the_lines_of_sh_blocks() {
    let markdown = "\
text\n```sh\ncargo run -- a # why\n\n# remark\ncargo xtask test\n```\n`cargo no`\n```text\nnot this\n```\n\
```rust\nnor();\n```\n```sh\ncargo run -- b | head\n```\n";
    assert_eq!(commands_of(markdown), ["cargo run -- a", "cargo run -- b | head"]);
}

#[test]
fn a_line_that_only_sets_variables_is_not_a_command() {
    assert!(sets_variables("KEY=$(grep -o 'a b' file | head -n 1)"));
    assert!(sets_variables("export WIREPROOF_PLC=http://localhost:1 OTHER=2"));
    assert!(sets_variables("KEY=1"));
    assert!(sets_variables("unset KEY OTHER"));
    assert!(!sets_variables("KEY=1 cargo run"));
    assert!(!sets_variables("cargo run -- --key=1"));
}

#[test]
fn variables_hold_for_the_following_lines_of_a_document() {
    let commands = ["NAME=$(echo a b)", "export OTHER=c", "test \"$NAME$OTHER\" = 'a bc'"];
    assert_eq!(run_all(&commands.map(str::to_owned), ""), Ok(()));
    let alone = ["test -n \"$NAME\"".to_owned()];
    assert!(run_all(&alone, "").is_err());
}

#[test]
fn only_a_simulated_network_or_relay_serves_until_terminated() {
    assert!(serves("cargo run --release -- sim serve --rate 50"));
    assert!(serves("cargo run --release -- sim nostr --events 10"));
    assert!(!serves("cargo run --release -- sim serve --help"));
    assert!(!serves("cargo run --release -- verify ada.test"));
}

#[test]
fn servers_of_queues_databases_and_archives_and_admin_apis_run_beside_the_commands_after_them() {
    assert!(serves_beside("docs/guide/examples/kafka.sh broker 4492"));
    assert!(serves_beside("target/interop/nats/nats-server --jetstream"));
    assert!(serves_beside("docs/guide/examples/postgres.sh server 4496"));
    assert!(serves_beside("cargo run --release -- follow --dids none --admin 127.0.0.1:2490"));
    assert!(serves_beside("cargo run --release -- archive serve a --listen 127.0.0.1:4497"));
    assert!(!serves_beside("cargo run --release -- archive verify a"));
    assert!(!serves_beside("docs/guide/examples/kafka.sh topic 4492 events"));
    assert!(!serves_beside("docs/guide/examples/postgres.sh sql 4496 posts 'SELECT 1'"));
    assert!(!serves_beside("cargo run --release -- follow --to kafka://127.0.0.1:4492/events"));
    assert!(!serves_beside("cargo run --release -- accounts list --admin 127.0.0.1:2490"));
}

#[test]
fn a_process_that_ends_before_its_admin_api_can_be_reached_is_a_failure() {
    let started = Beside::start("", "sh -c 'exit 3' follow --admin 127.0.0.1:1");
    assert!(started.is_err_and(|error| error.contains("ended before it served 127.0.0.1:1")));
}

#[test]
fn commands_use_the_program_that_is_built() {
    assert_eq!(built("cargo run --release -- inspect x | head", "/t/w"), "/t/w inspect x | head");
    let query =
        "A=$(cargo run --release -p wireproof-archive-cli --features query -- archive query a)";
    assert_eq!(built(query, "/t/w"), "A=$(/t/w archive query a)");
    assert_eq!(built("curl x", "/t/w"), "curl x");
    let demo = built("cargo run --release -p wireproof-demo", "/t/w");
    assert_eq!(demo, "WIREPROOF_RUST_PROFILE=parity /t/w-demo");
    let install = built("cargo install --path x", "/t/w");
    assert!(
        install.contains("cargo install --dry-run") && install.contains("--path x"),
        "{install}"
    );
}

#[test]
fn only_benchmarks_are_shortened() {
    for command in [
        "cargo run -- inspect x",
        "cargo run -- bench compare old.json new.json",
        "wireproof bench archive --quick",
    ] {
        assert_eq!(shortened(command), command);
    }
    assert_eq!(
        shortened("cargo run -- bench decode --passes 9 --json - | head"),
        "cargo run -- bench decode --passes 9 --json - --quick --warmup 0 --peers wireproof | head"
    );
    assert_eq!(
        shortened("wireproof bench --quick --peers a"),
        "wireproof bench --quick --peers a --passes 1 --warmup 0"
    );
}

fn started(script: &str) -> Result<Server, String> {
    Server::start(&mut process::command("sh", &["-ec", &format!("exec {script}")]))
}

#[test]
fn a_server_is_awaited_and_terminated() {
    let script = "sh -c 'trap \"echo bye; exit 0\" TERM; echo Ctrl-C ends it; \
                  while :; do sleep 0.01; done'";
    assert_eq!(started(script).unwrap().end(), Ok(()));
}

#[test]
fn a_command_that_ends_by_itself_has_not_served() {
    assert!(started("true").is_err_and(|error| error.contains("before it served")));
}

#[test]
fn the_exit_status_of_a_server_is_checked() {
    let script = "sh -c 'trap \"exit 3\" TERM; echo Ctrl-C ends it; while :; do sleep 0.01; done'";
    assert!(started(script).unwrap().end().is_err_and(|error| error.contains("3")));
}

fn pages() -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    documents().unwrap().into_iter().map(read).collect()
}

/// The lines of all examples of the guide, without indentation.
fn lines_of_examples() -> Vec<String> {
    fn add(folder: &Path, lines: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                add(&path, lines);
            } else if let Ok(text) = fs::read_to_string(&path) {
                lines.extend(text.lines().map(|line| line.trim().to_owned()));
            }
        }
    }
    let mut lines = Vec::new();
    add(&process::root().join("docs/guide/examples"), &mut lines);
    lines
}

#[test]
fn blocks_are_the_lines_between_fences() {
    let found = blocks("a\n```sh\nb\n\nc\n```\nd\n```\ne\n```\n");
    let found: Vec<_> = found.iter().map(|block| (block.mark, block.lines.join("|"))).collect();
    assert_eq!(found, [("sh", "b||c".to_owned()), ("", "e".to_owned())]);
}

/// `sh` runs here, `rust` in `conformance/outside`, `sql` in the tests of deliveries (`crates/cli/tests/live`). Programs of `python` run whole in the tests of the
/// Python package, on the pages that these name; other lines of `python` and `shell` are copies from the examples, which the tests of the command run.
/// `text` and `console` are not run: they need the live network, or Docker.
#[test]
fn every_block_of_the_documents_is_run_by_a_test() {
    let outside =
        fs::read_to_string(process::root().join("conformance/outside/src/lib.rs")).unwrap();
    let examples = lines_of_examples();
    let of_package = process::root().join("bindings/python/tests/test_documents.py");
    let of_package = fs::read_to_string(of_package).unwrap();
    for (path, text) in pages() {
        let name = path.strip_prefix(process::root()).unwrap().display().to_string();
        for Block { mark, lines } in blocks(&text) {
            match mark {
                "sh" | "text" | "console" | "toml" | "sql" => {}
                "rust" | "rust,no_run" => {
                    let is_included =
                        outside.contains(&format!("include_str!(\"../../../{name}\")"));
                    assert!(is_included, "{name} has Rust that no test compiles");
                }
                "python" if of_package.contains(&format!("ROOT / \"{name}\"")) => {}
                "python" | "shell" => {
                    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty())
                    {
                        let exists = examples.iter().any(|known| known == line);
                        assert!(exists, "{name}: not in the examples: {line}");
                    }
                }
                other => panic!("{name}: no test runs a block marked {other:?}"),
            }
        }
    }
}

#[test]
fn every_link_of_the_documents_has_a_target() {
    for (path, text) in pages() {
        let folder = path.parent().unwrap();
        for target in links(&text).filter(|target| !target.starts_with("http")) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            // Charts are drawn from the results of a run.
            if file.ends_with(".svg") {
                continue;
            }
            let file = if file.is_empty() { path.clone() } else { folder.join(file) };
            assert!(file.exists(), "{}: no {target}", path.display());
            if !heading.is_empty() {
                let text = fs::read_to_string(&file).unwrap();
                let exists = headings(&text).any(|known| known == heading);
                assert!(exists, "{}: no heading {target}", path.display());
            }
        }
    }
}

/// Link targets: text in parentheses after brackets.
fn links(markdown: &str) -> impl Iterator<Item = &str> {
    markdown.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// Headings, in the form that links use.
fn headings(markdown: &str) -> impl Iterator<Item = String> {
    let titles = markdown.lines().filter_map(|line| line.strip_prefix('#'));
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-');
    titles.map(move |title| {
        let title = title.trim_start_matches('#').trim().to_lowercase();
        title.chars().filter(kept).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    })
}

#[test]
fn every_test_that_the_security_pages_name_exists() {
    for page in ["security.md", "security-delivery.md", "security-nostr.md"] {
        let text = fs::read_to_string(process::root().join("docs").join(page)).unwrap();
        let names: Vec<&str> = text.split('`').skip(1).step_by(2).flat_map(last_segments).collect();
        let tests = names.iter().filter(|name| name.contains('_'));
        let missing: Vec<_> = tests.clone().filter(|name| !is_function(name)).collect();
        assert!(tests.count() > 10 && missing.is_empty(), "{page}: {missing:?}");
    }
}

/// The last segment of a path in code, `c` of `a::b::c`; of `a::{b, c}` both.
fn last_segments(code: &str) -> Vec<&str> {
    match code.rsplit_once("::") {
        Some((_, list)) if list.ends_with('}') => {
            list.trim_matches(['{', '}']).split(',').map(str::trim).collect()
        }
        Some((_, name)) => vec![name],
        None => Vec::new(),
    }
}

/// Whether a Rust file of the repository has a function or a module of this name.
fn is_function(name: &str) -> bool {
    let pattern = format!("(fn|mod) {name}\\b");
    let mut search = process::command("git", &["grep", "-qE", &pattern, "--", "*.rs"]);
    search.status().unwrap().success()
}

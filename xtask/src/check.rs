//! `cargo xtask check`: an answer within a minute and a half while you work: format, layers, lints, and the unit
//! tests of the crates that changed and of their users.
//!
//! A crate has changed if a file in its folder differs from the commit at which the branch left `main`, or, on `main`,
//! from the last commit. Integration tests and everything else are left to `cargo xtask test`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::Value;

use crate::layers::{self, Edges};
use crate::process::{self, Selection, cargo};
use crate::stages;

/// Runs the checks, the fastest first.
pub(crate) fn run() -> Result<(), String> {
    let started = Instant::now();
    cargo(&["fmt", "--all", "--check"])?;
    layers::check_workspace()?;
    let metadata = process::metadata()?;
    let base = base()?;
    let changed = changed_packages(&changed_files(&base)?, &folders(&metadata)?);
    let tested = with_dependents(&changed, &layers::edges(&metadata)?);
    println!("changed since {base}: {}; unit tests of: {}", listed(&changed), listed(&tested));
    stages::lints()?;
    unit_tests(&tested)?;
    println!(
        "checked in {:.0} s; `cargo xtask test` runs the rest",
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

fn listed(packages: &BTreeSet<String>) -> String {
    if packages.is_empty() {
        "none".to_owned()
    } else {
        packages.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
    }
}

/// The commit that files are compared with: where the branch left `main`. That is the last commit on `main`, and
/// where there is no `main`.
fn base() -> Result<String, String> {
    let merge_base = ["merge-base", "HEAD", "main"];
    let base = git(&merge_base).or_else(|_| git(&["rev-parse", "HEAD"]))?;
    Ok(base.chars().take(12).collect())
}

fn git(args: &[&str]) -> Result<String, String> {
    Ok(process::output(&mut process::command("git", args))?.trim().to_owned())
}

/// Paths from the root of files that differ from `base`, or are new and not ignored.
fn changed_files(base: &str) -> Result<Vec<PathBuf>, String> {
    let changed = git(&["diff", "--name-only", base])?;
    let new = git(&["ls-files", "--others", "--exclude-standard"])?;
    Ok(changed.lines().chain(new.lines()).map(PathBuf::from).collect())
}

/// A package and its folder, from the root.
#[derive(Clone, Debug)]
struct Folder {
    package: String,
    path: PathBuf,
}

fn folders(metadata: &Value) -> Result<Vec<Folder>, String> {
    let packages = metadata["packages"].as_array().ok_or("cargo metadata without packages")?;
    let folder = |package: &Value| {
        let manifest = Path::new(package["manifest_path"].as_str()?).parent()?;
        let path = manifest.strip_prefix(process::root()).ok()?.to_owned();
        Some(Folder { package: layers::name(package), path })
    };
    Ok(packages.iter().filter_map(folder).collect())
}

/// The packages of these files. A file at the root other than a document may change every package.
fn changed_packages(files: &[PathBuf], folders: &[Folder]) -> BTreeSet<String> {
    let mut changed = BTreeSet::new();
    for file in files {
        let holding = folders.iter().filter(|folder| file.starts_with(&folder.path));
        match holding.max_by_key(|folder| folder.path.components().count()) {
            Some(folder) => drop(changed.insert(folder.package.clone())),
            None if is_of_all(file) => {
                changed.extend(folders.iter().map(|folder| folder.package.clone()));
            }
            None => {}
        }
    }
    changed
}

fn is_of_all(file: &Path) -> bool {
    ["Cargo.toml", "Cargo.lock", "rust-toolchain.toml"].iter().any(|name| file == Path::new(name))
}

/// These packages and their users, directly or not.
fn with_dependents(changed: &BTreeSet<String>, edges: &[Edges]) -> BTreeSet<String> {
    let mut found = changed.clone();
    loop {
        let users = edges.iter().filter(|edges| edges.to.iter().any(|used| found.contains(used)));
        let more: Vec<String> = users.map(|edges| edges.from.clone()).collect();
        let before = found.len();
        found.extend(more);
        if found.len() == before {
            return found;
        }
    }
}

/// Builds the unit tests of the default features, and runs the tests of `packages`.
fn unit_tests(packages: &BTreeSet<String>) -> Result<(), String> {
    if packages.is_empty() {
        return Ok(());
    }
    let format = ["--no-run", "--message-format", "json-render-diagnostics"];
    let mut build = Selection::Default.test(&["--lib", "--bins"]);
    let messages = process::output(build.args(format))?;
    for test in messages.lines().filter_map(test_program) {
        if packages.contains(&test.package) {
            println!("unit tests of {}", test.package);
            let mut command = process::command(&test.program, &["--quiet"]);
            process::run(command.current_dir(&test.folder))?;
        }
    }
    Ok(())
}

/// A built test program.
#[derive(Clone, Debug, PartialEq, Eq)]
struct TestProgram {
    package: String,
    /// The folder of its manifest, where Cargo runs tests.
    folder: PathBuf,
    program: String,
}

/// The test program in a line of Cargo's messages.
fn test_program(line: &str) -> Option<TestProgram> {
    let message: Value = serde_json::from_str(line).ok()?;
    if message["profile"]["test"] != true {
        return None;
    }
    let folder = Path::new(message["manifest_path"].as_str()?).parent()?.to_owned();
    let of = message["package_id"].as_str()?;
    // `path+file:///…/crates/codec#wireproof-codec@0.1.0`, or `…/xtask#0.1.0` where the folder has the name.
    let (path, of) = of.rsplit_once('#')?;
    let name = of.split_once('@').map_or(path.rsplit('/').next()?, |(name, _)| name);
    let program = message["executable"].as_str()?.to_owned();
    Some(TestProgram { package: layers::short(name).to_owned(), folder, program })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn set(names: &[&str]) -> BTreeSet<String> {
        names.iter().map(|name| (*name).to_owned()).collect()
    }

    fn changed(files: &[&str]) -> BTreeSet<String> {
        let folder =
            |package: &str, path: &str| Folder { package: package.to_owned(), path: path.into() };
        let folders = [
            folder("codec", "crates/codec"),
            folder("bench", "bench"),
            folder("bench-protocol", "bench/protocol"),
        ];
        changed_packages(&files.iter().map(PathBuf::from).collect::<Vec<_>>(), &folders)
    }

    #[test]
    fn a_file_belongs_to_the_package_of_the_innermost_folder() {
        assert_eq!(changed(&["crates/codec/src/lib.rs"]), set(&["codec"]));
        assert_eq!(changed(&["bench/protocol/src/lib.rs"]), set(&["bench-protocol"]));
        assert_eq!(changed(&["bench/runners/rust-raw/src/main.rs"]), set(&["bench"]));
        assert_eq!(changed(&["README.md", "docs/security.md"]), set(&[]));
    }

    #[test]
    fn the_manifest_of_the_workspace_changes_every_package() {
        assert_eq!(changed(&["Cargo.toml"]), set(&["bench", "bench-protocol", "codec"]));
    }

    #[test]
    fn what_uses_a_changed_package_is_tested_too() {
        let edges = |from: &str, to: &[&str]| Edges {
            from: from.to_owned(),
            to: to.iter().map(|name| (*name).to_owned()).collect(),
        };
        let all = [edges("cli", &["net"]), edges("net", &["codec"]), edges("mapping", &[])];
        assert_eq!(with_dependents(&set(&["codec"]), &all), set(&["cli", "codec", "net"]));
        assert_eq!(with_dependents(&set(&["mapping"]), &all), set(&["mapping"]));
        assert_eq!(with_dependents(&set(&[]), &all), set(&[]));
    }

    #[test]
    fn test_programs_are_read_from_the_messages_of_cargo() {
        let line = |id: &str, is_test: bool| {
            serde_json::json!({"package_id": id, "manifest_path": "/w/crates/codec/Cargo.toml",
                "profile": {"test": is_test}, "executable": "/t/codec-1"})
            .to_string()
        };
        let found = test_program(&line("path+file:///w/crates/codec#wireproof-codec@0.1.0", true));
        let codec = TestProgram {
            package: "codec".to_owned(),
            folder: "/w/crates/codec".into(),
            program: "/t/codec-1".to_owned(),
        };
        assert_eq!(found, Some(codec));
        let found = test_program(&line("path+file:///w/xtask#0.1.0", true)).unwrap();
        assert_eq!(found.package, "xtask");
        assert_eq!(test_program(&line("path+file:///w/xtask#0.1.0", false)), None);
        assert_eq!(test_program("no message"), None);
    }
}

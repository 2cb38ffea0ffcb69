//! Programs of other projects that our tests run: set up in `target/interop/` as pinned in `interop/`, a part again when its
//! files change.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;
use serde_json::Value;

use crate::process::{self, Selection, at};
use crate::toolchains::{Toolchain, Without};
use crate::{left_out, venv};

/// What to do with the programs.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Install the programs in target/interop, and run no test.
    #[arg(long)]
    install: bool,
    #[command(flatten)]
    without: Without,
}

/// Sets up the programs and runs the interop tests alone.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    set_up(&options.without)?;
    if options.install {
        return Ok(());
    }
    process::build_all()?;
    test(&options.without)
}

/// Runs the interop tests with the programs that are set up.
pub(crate) fn test(without: &Without) -> Result<(), String> {
    let mut test = Selection::All.test(&["--test=interop"]);
    left_out::configure(&mut test);
    configure(&mut test, without);
    process::run(&mut test)
}

/// Sets up every part whose toolchain is present.
pub(crate) fn set_up(without: &Without) -> Result<(), String> {
    cargo_program("nostr", "nostr-relay")?;
    cargo_program("sdk-rust", "sdk-rust")?;
    if without.has(Toolchain::Node) {
        for part in ["pds", "readers", "labeler", "postgres", "azure"] {
            packages(&source(part), &folder().join(part))?;
        }
    }
    if without.has(Toolchain::Python) {
        python_program("arroba")?;
        python_program("jetstream")?;
        python_program("sdk-python")?;
    }
    cargo_program("nostrdb", "store-events")?;
    // Without Go, programs that were built before are used.
    if without.has(Toolchain::Go) {
        // The verifier last: the tests take it as the sign that all are there.
        go_programs("relay", &[("relay", RELAY), ("rainbow", RAINBOW), ("verify", ".")])?;
        go_programs("jetstream-go", &[("jetstream-client", ".")])?;
        go_programs("nats", &[("nats-server", NATS)])?;
        go_programs("s3", &[("versitygw", S3)])?;
    }
    if without.has(Toolchain::Java) { kafka(&folder().join("kafka")) } else { Ok(()) }
}

/// Passes the folder to the tests, and the toolchains without which they run.
pub(crate) fn configure(test: &mut Command, without: &Without) {
    test.env("WIREPROOF_INTEROP", folder()).env("WIREPROOF_WITHOUT", without.names().join(","));
}

fn folder() -> PathBuf {
    process::target("interop")
}

fn source(part: &str) -> PathBuf {
    process::root().join("interop").join(part)
}

/// Copies the sources and installs their packages next to them, as npm requires.
pub(crate) fn packages(from: &Path, to: &Path) -> Result<(), String> {
    let files = sources(from)?;
    unless_fresh(&files, to, &to.join("node_modules"), || {
        copy(&files, to)?;
        let mut npm = process::command("npm", &["ci", "--no-audit", "--no-fund"]);
        // Only the source of an addon is pinned, so no prebuilt binary is used.
        npm.env("npm_config_build_from_source", "true");
        npm.env("CFLAGS", FAST_C).env("CXXFLAGS", FAST_C);
        if let Some(prefix) = headers()? {
            npm.env("npm_config_nodedir", prefix);
        }
        process::run(npm.current_dir(to))
    })
}

/// The prefix with Node's headers, if they are installed; the build of an addon fetches them otherwise.
fn headers() -> Result<Option<PathBuf>, String> {
    let path = process::output(&mut process::command("node", &["-p", "process.execPath"]))?;
    let prefix = Path::new(path.trim()).ancestors().nth(2);
    let prefix = prefix.filter(|prefix| prefix.join("include/node/node.h").exists());
    Ok(prefix.map(Path::to_owned))
}

/// Copies the sources and makes an environment with their packages.
fn python_program(part: &str) -> Result<(), String> {
    let (files, to) = (sources(&source(part))?, folder().join(part));
    unless_fresh(&files, &to, &to.join("venv"), || {
        copy(&files, &to)?;
        let pins = format!("interop/{part}/requirements.txt");
        venv::python(&to.join("venv"), "python3", &[&pins]).map(drop)
    })
}

/// Builds programs, with their packages, as the module of the part pins them.
fn go_programs(part: &str, programs: &[(&str, &str)]) -> Result<(), String> {
    let (files, to) = (sources(&source(part))?, folder().join(part));
    let Some((last, _)) = programs.last() else { return Ok(()) };
    unless_fresh(&files, &to, &to.join(last), || {
        copy(&files, &to)?;
        for (program, package) in programs {
            let mut go = process::command("go", &["build", "-mod=readonly", "-buildvcs=false"]);
            go.args(["-ldflags=-s -w", "-o"]).arg(to.join(program)).arg(package);
            process::run(go.current_dir(&to).env("CGO_CFLAGS", FAST_C))?;
        }
        Ok(())
    })
}

/// Builds a program as the lock file of the part pins it, apart from this workspace, whose dependencies then stay as they are.
fn cargo_program(part: &str, program: &str) -> Result<(), String> {
    let (files, to) = (sources(&source(part))?, folder().join(part));
    unless_fresh(&files, &to, &to.join(program), || {
        copy(&files, &to)?;
        let build = to.join("build");
        let mut cargo = process::command("cargo", &["build", "--locked", "--target-dir"]);
        // Not as the workspace's own tests are built: a test asks little of a server.
        cargo.env("CARGO_PROFILE_DEV_OPT_LEVEL", "0").env("CARGO_PROFILE_DEV_DEBUG", "false");
        process::run(cargo.arg(&build).current_dir(&to).env_remove("CARGO_TARGET_DIR"))?;
        let built = build.join("debug").join(program);
        fs::rename(&built, to.join(program)).map_err(|error| at(&built, &error))?;
        remove(&build)
    })
}

/// Copies the packages of Kafka, which Maven fetches.
fn kafka(to: &Path) -> Result<(), String> {
    let (files, lib) = (sources(&source("kafka"))?, to.join("lib"));
    unless_fresh(&files, to, &lib, || {
        copy(&files, to)?;
        let goal = "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies";
        let mut maven = process::command("mvn", &["--batch-mode", "--quiet", goal]);
        maven.arg("-DincludeScope=runtime").arg(format!("-DoutputDirectory={}", lib.display()));
        process::run(maven.current_dir(to))
    })
}

/// Builds tap of the same module, and returns its path.
pub(crate) fn build_tap() -> Result<PathBuf, String> {
    install("tap", TAP, version(MODULE))
}

/// Builds the relay of the same module, and returns its path.
pub(crate) fn build_relay() -> Result<PathBuf, String> {
    install("relay", RELAY, version(MODULE))
}

/// Builds the official Jetstream, and returns its path.
pub(crate) fn build_jetstream() -> Result<PathBuf, String> {
    install("jetstream", JETSTREAM, JETSTREAM_VERSION)
}

/// Builds a program of a Go module, with the packages that it names, and returns its path.
fn install(name: &str, package: &str, version: &str) -> Result<PathBuf, String> {
    let to = folder().join("measured").join(name);
    fs::create_dir_all(&to).map_err(|error| at(&to, &error))?;
    let go = |args: &[&str]| {
        let mut go = process::command("go", args);
        process::run(go.current_dir(&to).env("GOFLAGS", "-mod=mod").env("GOWORK", "off"))
    };
    if !to.join("go.mod").exists() {
        go(&["mod", "init", "measured"])?;
    }
    go(&["get", &format!("{package}@{version}")])?;
    go(&["build", "-ldflags=-s -w", "-o", name, package])?;
    Ok(to.join(name))
}

/// The version of a module with one.
fn version(module: &str) -> &str {
    module.rsplit('@').next().unwrap_or_default()
}

/// Fetches the indigo Go module, whose fixtures our tests read, and returns its folder.
pub(crate) fn fetch_indigo() -> Result<PathBuf, String> {
    let cache = process::target("gomod");
    std::fs::create_dir_all(&cache).map_err(|error| at(&cache, &error))?;
    let mut command = process::command("go", &["mod", "download", "-json", MODULE]);
    // Outside any module, so that no other requirement counts; writable, so that `cargo clean` can
    // remove it.
    command.current_dir(&cache).env("GOMODCACHE", &cache).env("GOFLAGS", "-modcacherw");
    let answer: Value = serde_json::from_str(&process::output(&mut command)?)
        .map_err(|error| format!("go mod download: {error}"))?;
    match (answer["Dir"].as_str(), answer["Error"].as_str()) {
        (Some(dir), None) => Ok(dir.into()),
        (_, error) => Err(format!("go mod download {MODULE}: {}", error.unwrap_or("no folder"))),
    }
}

/// The files of a part, sorted.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| at(folder, &error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<PathBuf> =
        paths.collect::<io::Result<_>>().map_err(|error| at(folder, &error))?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

/// Calls `make` in an empty folder unless `product` exists and was made from `files` as they are.
fn unless_fresh(
    files: &[PathBuf],
    folder: &Path,
    product: &Path,
    make: impl FnOnce() -> Result<(), String>,
) -> Result<(), String> {
    let stamp_file = folder.join("made-from");
    let stamp = stamp(files)?;
    if product.exists() && fs::read(&stamp_file).is_ok_and(|made_from| made_from == stamp) {
        return Ok(());
    }
    remove(folder)?;
    fs::create_dir_all(folder).map_err(|error| at(folder, &error))?;
    make()?;
    fs::write(&stamp_file, stamp).map_err(|error| at(&stamp_file, &error))
}

/// Names and contents, concatenated.
fn stamp(files: &[PathBuf]) -> Result<Vec<u8>, String> {
    let mut stamp = Vec::new();
    for file in files {
        stamp.extend(file.file_name().unwrap_or_default().as_encoded_bytes());
        stamp.push(0);
        stamp.extend(fs::read(file).map_err(|error| at(file, &error))?);
    }
    Ok(stamp)
}

fn copy(files: &[PathBuf], to: &Path) -> Result<(), String> {
    for file in files {
        let copied = fs::copy(file, to.join(file.file_name().unwrap_or_default()));
        copied.map_err(|error| at(file, &error))?;
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(at(folder, &error)),
        _ => Ok(()),
    }
}

/// Flags for C code of servers, which is SQLite for the most part. A test asks little of a server.
const FAST_C: &str = "-O0";

const RELAY: &str = "github.com/bluesky-social/indigo/cmd/relay";
const RAINBOW: &str = "github.com/bluesky-social/indigo/cmd/rainbow";
const NATS: &str = "github.com/nats-io/nats-server/v2";
const S3: &str = "github.com/versity/versitygw/cmd/versitygw";
const JETSTREAM: &str = "github.com/bluesky-social/jetstream/cmd/jetstream";
const JETSTREAM_VERSION: &str = "v0.0.0-20251009222037-7d7efa58d7f1";
const TAP: &str = "github.com/bluesky-social/indigo/cmd/tap";
const MODULE: &str = "github.com/bluesky-social/indigo@v0.0.0-20260605210604-af2fec94f34c";

//! Do we and the programs that the network runs on still understand each other?
//!
//! What `interop/` pins is set up in `target/interop/`, each part anew when its files have changed, and
//! the tests are told where it is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::process;
use crate::toolchains::{Toolchain, Without};

/// Runs the tests alone, with what they need set up.
pub(crate) fn run(without: &Without) -> Result<(), String> {
    set_up(without)?;
    // Of the whole workspace, so that nothing is built another time with other features.
    process::run(&mut process::command("cargo", &["build", "--workspace", "--bin", "wireproof"]))?;
    let mut test = process::command("cargo", &["test", "--workspace", "--test", "interop"]);
    tell(&mut test, without);
    process::run(&mut test)
}

/// Sets up what there is a toolchain for.
pub(crate) fn set_up(without: &Without) -> Result<(), String> {
    if !without.has(Toolchain::Node) {
        // Everything needs it.
        return Ok(());
    }
    for part in ["pds", "readers"] {
        packages(&source(part), &folder().join(part))?;
    }
    // Without Go, the relay of an earlier time will do.
    if without.has(Toolchain::Go) { relay(&folder().join("relay")) } else { Ok(()) }
}

/// Tells the tests where it is.
pub(crate) fn tell(test: &mut Command, without: &Without) {
    match without.has(Toolchain::Node) {
        true => test.env("WIREPROOF_INTEROP", folder()),
        false => test.env_remove("WIREPROOF_INTEROP"),
    };
}

fn folder() -> PathBuf {
    process::target("interop")
}

fn source(part: &str) -> PathBuf {
    process::root().join("interop").join(part)
}

/// npm wants its packages beside the sources, so the sources are copied.
pub(crate) fn packages(from: &Path, to: &Path) -> Result<(), String> {
    let files = sources(from)?;
    unless_fresh(&files, to, &to.join("node_modules"), || {
        copy(&files, to)?;
        let mut npm = process::command("npm", &["ci", "--no-audit", "--no-fund"]);
        // Of an addon only the source is pinned, so that is what runs, and not what somebody made of it.
        npm.env("npm_config_build_from_source", "true");
        if let Some(prefix) = headers()? {
            npm.env("npm_config_nodedir", prefix);
        }
        process::run(npm.current_dir(to))
    })
}

/// Where the machine's Node has its headers, if they were installed with it; if not, the build of an
/// addon fetches them.
fn headers() -> Result<Option<PathBuf>, String> {
    let path = process::output(&mut process::command("node", &["-p", "process.execPath"]))?;
    let prefix = Path::new(path.trim()).ancestors().nth(2);
    let prefix = prefix.filter(|prefix| prefix.join("include/node/node.h").exists());
    Ok(prefix.map(Path::to_owned))
}

fn relay(to: &Path) -> Result<(), String> {
    let files = sources(&source("relay"))?;
    let product = to.join("relay");
    unless_fresh(&files, to, &product, || {
        copy(&files, to)?;
        let mut go = process::command("go", &["build", "-mod=readonly", "-buildvcs=false"]);
        go.args(["-ldflags=-s -w", "-o"]).arg(&product).arg(RELAY);
        process::run(go.current_dir(to))
    })
}

/// The files of a part, by name.
fn sources(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let entries = fs::read_dir(folder).map_err(|error| fault(folder, &error))?;
    let paths = entries.map(|entry| entry.map(|entry| entry.path()));
    let mut files: Vec<PathBuf> =
        paths.collect::<io::Result<_>>().map_err(|error| fault(folder, &error))?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

/// Calls `make` in an empty folder unless `product` is there and was made from `files` as they are.
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
    fs::create_dir_all(folder).map_err(|error| fault(folder, &error))?;
    make()?;
    fs::write(&stamp_file, stamp).map_err(|error| fault(&stamp_file, &error))
}

/// Names and contents, one after the other: they are few and short.
fn stamp(files: &[PathBuf]) -> Result<Vec<u8>, String> {
    let mut stamp = Vec::new();
    for file in files {
        stamp.extend(file.file_name().unwrap_or_default().as_encoded_bytes());
        stamp.push(0);
        stamp.extend(fs::read(file).map_err(|error| fault(file, &error))?);
    }
    Ok(stamp)
}

fn copy(files: &[PathBuf], to: &Path) -> Result<(), String> {
    for file in files {
        let copied = fs::copy(file, to.join(file.file_name().unwrap_or_default()));
        copied.map_err(|error| fault(file, &error))?;
    }
    Ok(())
}

fn remove(folder: &Path) -> Result<(), String> {
    match fs::remove_dir_all(folder) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(fault(folder, &error)),
        _ => Ok(()),
    }
}

fn fault(path: &Path, error: &io::Error) -> String {
    format!("{}: {error}", path.display())
}

const RELAY: &str = "github.com/bluesky-social/indigo/cmd/relay";

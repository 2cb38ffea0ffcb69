//! `cargo xtask fuzz`: runs the targets of `fuzz/fuzz_targets/` on the nightly toolchain.
//!
//! Corpora are kept in `target/fuzz/corpus/`, seeded with the vectors of `fuzz/vectors/` and, where
//! `WIREPROOF_FIXTURES` names a folder, with real files from it.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use clap::Args;

use crate::process::{self, at};

/// Targets and time.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Seconds for each target.
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Targets to run; all by default.
    targets: Vec<String>,
}

/// Runs each target in turn, up to the first finding.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let known = targets()?;
    if let Some(unknown) = options.targets.iter().find(|target| !known.contains(target)) {
        return Err(format!("unknown target `{unknown}`; targets are {}", known.join(", ")));
    }
    let tool = tool()?;
    let chosen = if options.targets.is_empty() { &known } else { &options.targets };
    for target in chosen {
        println!("\n=== {target}");
        let corpus = seeded_corpus(target)?;
        let limits = [
            format!("-max_total_time={}", options.seconds),
            "-timeout=10".to_owned(),
            "-rss_limit_mb=2048".to_owned(),
            "-max_len=65536".to_owned(),
        ];
        let build = process::target("fuzz");
        let mut command = nightly(&tool);
        command.args(["fuzz", "run", "--fuzz-dir", "fuzz", "--target-dir"]).arg(build);
        process::run(command.arg(target).arg(corpus).arg("--").args(limits))?;
    }
    Ok(())
}

fn targets() -> Result<Vec<String>, String> {
    let folder = process::root().join("fuzz/fuzz_targets");
    let mut targets: Vec<String> = files(&folder)?
        .iter()
        .filter_map(|path| Some(path.file_stem()?.to_string_lossy().into_owned()))
        .collect();
    targets.sort();
    Ok(targets)
}

/// The installed `cargo-fuzz`, or one installed now under `target/`.
fn tool() -> Result<PathBuf, String> {
    let own = process::target("tools/bin/cargo-fuzz");
    for candidate in [own.clone(), "cargo-fuzz".into()] {
        let probe = Command::new(&candidate).arg("--version").output();
        if probe.is_ok_and(|output| output.status.success()) {
            return Ok(candidate);
        }
    }
    let tools = process::target("tools");
    let mut install = process::command("cargo", &["install", "cargo-fuzz", "--locked", "--root"]);
    process::run(install.arg(tools))?;
    Ok(own)
}

/// A command that uses the nightly toolchain instead of the one that built `xtask`.
fn nightly(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(process::root()).env("RUSTUP_TOOLCHAIN", "nightly");
    for variable in ["CARGO", "RUSTC", "RUSTDOC", "CARGO_TARGET_DIR"] {
        command.env_remove(variable);
    }
    command
}

/// The corpus folder of a target, with all available seeds.
fn seeded_corpus(target: &str) -> Result<PathBuf, String> {
    let corpus = process::target("fuzz/corpus").join(target);
    fs::create_dir_all(&corpus).map_err(|error| at(&corpus, &error))?;
    let vectors = process::root().join("fuzz/vectors").join(target);
    let mut seeds = if vectors.is_dir() { files(&vectors)? } else { Vec::new() };
    if let Some(fixtures) = std::env::var_os("WIREPROOF_FIXTURES") {
        let found = files(&PathBuf::from(fixtures).join("atproto"))?;
        seeds.extend(found.into_iter().filter(|path| is_seed(target, path)));
    }
    for seed in seeds {
        let bytes = fs::read(&seed).map_err(|error| at(&seed, &error))?;
        let name = seed.to_string_lossy().replace(['/', '\\'], "_");
        let is_short = |(_, part): &(usize, &[u8])| part.len() <= 65_536;
        for (index, part) in parts(&name, &bytes).into_iter().enumerate().filter(is_short) {
            let path = corpus.join(format!("{name}.{index}"));
            fs::write(&path, part).map_err(|error| at(&path, &error))?;
        }
    }
    Ok(corpus)
}

fn is_seed(target: &str, path: &Path) -> bool {
    let name = path.to_string_lossy();
    let endings: &[&str] = match target {
        "cbor" => &[".cbor", ".dag-cbor"],
        "json" => &[".dag-json", "data-model-valid.json", "data-model-fixtures.json"],
        "car" | "repository" => &[".car"],
        "frame" | "judge" => &[".frame", "_dev.bin"],
        "syntax" => &["_valid.txt", "_invalid.txt"],
        "plc" => return ["/plc/", "/did/"].iter().any(|folder| name.contains(folder)),
        _ => &[],
    };
    endings.iter().any(|ending| name.ends_with(ending))
}

/// The inputs in a file: the frames of a capture, the lines of a list, or the whole file.
fn parts<'b>(name: &str, bytes: &'b [u8]) -> Vec<&'b [u8]> {
    match name {
        _ if name.ends_with("_dev.bin") => captured(bytes),
        _ if name.ends_with("valid.txt") => bytes.split(|byte| *byte == b'\n').collect(),
        _ => vec![bytes],
    }
}

/// The frames of a capture, each after its length in four bytes, little-endian.
fn captured(mut file: &[u8]) -> Vec<&[u8]> {
    let mut frames = Vec::new();
    while let Some((len, rest)) = file.split_first_chunk() {
        let Some((frame, after)) = rest.split_at_checked(u32::from_le_bytes(*len) as usize) else {
            break;
        };
        frames.push(frame);
        file = after;
    }
    frames
}

/// The files in a folder and its subfolders.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| at(folder, &error))? {
        let path = entry.map_err(|error| at(folder, &error))?.path();
        if path.is_dir() { found.extend(files(&path)?) } else { found.push(path) }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_capture_is_split_at_its_lengths() {
        assert_eq!(captured(b"\x01\0\0\0a\x02\0\0\0bc"), [&b"a"[..], b"bc"]);
        assert_eq!(captured(b"\x01\0\0\0a\xff\0\0\0bc"), [&b"a"[..]]);
    }
}

//! Collects the Rust examples of every public crate's documentation into one Markdown file, which
//! `src/lib.rs` includes as doctests; and the example of `query` into a program. Doctests run in this folder, so the repository that
//! the documents read is copied into it.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs};

fn main() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let repository = here.join("../../docs/guide/examples/repository.car");
    println!("cargo::rerun-if-changed={}", repository.display());
    fs::copy(repository, here.join("repository.car")).expect("the folder is writable");
    let crates = here.join("../../crates");
    let mut examples = String::new();
    for name in CRATES {
        let source = crates.join(name).join("src");
        println!("cargo::rerun-if-changed={}", source.display());
        for file in rust_files(&source) {
            let text = fs::read_to_string(&file).expect("a source file is UTF-8");
            let shown = file.strip_prefix(&crates).expect("found below").display().to_string();
            collect(&shown, &text, &mut examples);
        }
    }
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("set by cargo"));
    fs::write(out.join("examples.md"), examples).expect("OUT_DIR is writable");
    let query = crates.join("query/src/lib.rs");
    println!("cargo::rerun-if-changed={}", query.display());
    let query = fs::read_to_string(query).expect("a source file is UTF-8");
    fs::write(out.join("query.rs"), program(&query)).expect("OUT_DIR is writable");
}

/// The first example of a file, with the lines that the documentation hides.
fn program(text: &str) -> String {
    let lines = text.lines().filter_map(|line| line.strip_prefix("//!"));
    let lines = lines.map(|line| line.strip_prefix(' ').unwrap_or(line));
    let example = lines.skip_while(|line| *line != "```").skip(1).take_while(|line| *line != "```");
    example.map(|line| format!("{}\n", line.strip_prefix("# ").unwrap_or(line))).collect()
}

/// Appends every fenced Rust block of the documentation comments under a heading with its place.
fn collect(file: &str, text: &str, examples: &mut String) {
    let mut is_open = false;
    let mut is_rust = false;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim_start();
        let Some(comment) = line.strip_prefix("//!").or_else(|| line.strip_prefix("///")) else {
            continue;
        };
        let comment = comment.strip_prefix(' ').unwrap_or(comment);
        if let Some(mark) = comment.strip_prefix("```") {
            if !is_open {
                is_rust = matches!(mark, "" | "rust" | "no_run" | "should_panic");
                if is_rust {
                    writeln!(examples, "# crates/{file}, line {}\n", number + 1).expect("a string");
                }
            }
            is_open = !is_open;
            if is_rust {
                writeln!(examples, "{comment}{}", if is_open { "" } else { "\n" })
                    .expect("a string");
            }
        } else if is_open && is_rust {
            writeln!(examples, "{comment}").expect("a string");
        }
    }
}

/// The Rust files below a folder, sorted.
fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a source folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The crates that `wireproof` re-exports, and itself, without `query`.
const CRATES: [&str; 17] = [
    "archive",
    "atproto",
    "backfill",
    "codec",
    "crypto",
    "delivery",
    "follower",
    "kernels",
    "label-follower",
    "net",
    "nostr",
    "nostr-files",
    "nostr-follower",
    "nostr-formats",
    "store",
    "verify",
    "wireproof",
];

//! Is every block of code in the documents run by somebody, and does every link lead somewhere?

use std::fs;
use std::path::{Path, PathBuf};

use crate::process;

/// A fenced block: what it is marked as, and its lines.
struct Block {
    mark: String,
    lines: Vec<String>,
}

fn blocks(markdown: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut open: Option<Block> = None;
    for line in markdown.lines() {
        match (line.trim().strip_prefix("```"), &mut open) {
            (Some(mark), None) => open = Some(Block { mark: mark.to_owned(), lines: Vec::new() }),
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (None, Some(block)) => block.lines.push(line.to_owned()),
            (None, None) => {}
        }
    }
    blocks
}

fn pages() -> Vec<(PathBuf, String)> {
    let read = |path: PathBuf| (path.clone(), fs::read_to_string(path).unwrap());
    super::documents().unwrap().into_iter().map(read).collect()
}

fn root() -> &'static Path {
    process::root()
}

/// All that is in the examples of the guide, without indentation.
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
    add(&root().join("docs/guide/examples"), &mut lines);
    lines
}

#[test]
fn a_block_is_what_stands_between_fences() {
    let found = blocks("a\n```sh\nb\n\nc\n```\nd\n```\ne\n```\n");
    let found: Vec<_> = found.iter().map(|block| (&*block.mark, block.lines.join("|"))).collect();
    assert_eq!(found, [("sh", "b||c".to_owned()), ("", "e".to_owned())]);
}

/// `sh` is run by `super`, `rust` by the tests of the crate `wireproof`, and what is in `python` and `shell`
/// stands in the examples, which the tests of the command run.
#[test]
fn every_block_of_the_documents_is_run_by_somebody() {
    let front_door = fs::read_to_string(root().join("crates/wireproof/src/lib.rs")).unwrap();
    let examples = lines_of_examples();
    for (path, text) in pages() {
        let name = path.strip_prefix(root()).unwrap().display().to_string();
        for Block { mark, lines } in blocks(&text) {
            match mark.as_str() {
                "sh" | "text" | "toml" => {}
                "rust" => {
                    let is_included =
                        front_door.contains(&format!("include_str!(\"../../../{name}\")"));
                    assert!(is_included, "{name} has Rust that no test compiles");
                }
                "python" | "shell" => {
                    for line in lines.iter().map(|line| line.trim()).filter(|line| !line.is_empty())
                    {
                        let is_there = examples.iter().any(|known| known == line);
                        assert!(is_there, "{name}: not in the examples: {line}");
                    }
                }
                other => panic!("{name}: nobody runs a block marked {other:?}"),
            }
        }
    }
}

#[test]
fn every_link_of_the_documents_leads_to_a_file_and_a_heading() {
    for (path, text) in pages() {
        let folder = path.parent().unwrap();
        for target in links(&text).filter(|target| !target.starts_with("http")) {
            let (file, heading) = target.split_once('#').unwrap_or((target, ""));
            // Pictures are drawn from the results of a run.
            if file.ends_with(".svg") {
                continue;
            }
            let file = if file.is_empty() { path.clone() } else { folder.join(file) };
            assert!(file.exists(), "{}: no {target}", path.display());
            if !heading.is_empty() {
                let text = fs::read_to_string(&file).unwrap();
                let is_there = headings(&text).any(|known| known == heading);
                assert!(is_there, "{}: no heading {target}", path.display());
            }
        }
    }
}

/// What stands in parentheses behind brackets.
fn links(markdown: &str) -> impl Iterator<Item = &str> {
    markdown.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0))
}

/// Headings as they are written in links.
fn headings(markdown: &str) -> impl Iterator<Item = String> {
    let titles = markdown.lines().filter_map(|line| line.strip_prefix('#'));
    let kept = |letter: &char| letter.is_alphanumeric() || matches!(letter, ' ' | '-');
    titles.map(move |title| {
        let title = title.trim_start_matches('#').trim().to_lowercase();
        title.chars().filter(kept).map(|letter| if letter == ' ' { '-' } else { letter }).collect()
    })
}

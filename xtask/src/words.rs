//! Phrases that our documents overuse, counted in the prose of every page and in the documentation comments of every package, and held
//! to the level of other projects' documents.
//!
//! | phrases | per 10,000 words elsewhere | instead |
//! |---|---:|---|
//! | `those of`, `that of`, `those that` | 0 – 0.8 | repeat the noun |
//! | `what is`, `what the`, `what it` … | 0.3 – 8 | name the thing |
//! | `beside`, `besides` | 0 | next to, together with |
//! | `, also` | 0 – 0.3 | even if, too |
//! | `each` | 7 – 28 | every, or a plural |
//!
//! Code, targets of links and generated blocks are no prose.

use std::fs;
use std::path::{Path, PathBuf};

use crate::process::{self, at};

/// Phrases of one habit, and how many of them 10,000 words may have.
struct Habit {
    name: &'static str,
    phrases: &'static [&'static [&'static str]],
    per_10_000_words: usize,
}

const HABITS: [Habit; 5] = [
    Habit {
        name: "those of",
        phrases: &[&["those", "of"], &["that", "of"], &["those", "that"], &["that", "which"]],
        per_10_000_words: 1,
    },
    Habit {
        name: "what is",
        phrases: &[
            &["what", "is"],
            &["what", "are"],
            &["what", "was"],
            &["what", "the"],
            &["what", "a"],
            &["what", "an"],
            &["what", "it"],
            &["what", "they"],
            &["what", "has"],
            &["what", "have"],
            &["what", "can"],
            &["what", "comes"],
        ],
        per_10_000_words: 8,
    },
    Habit { name: "beside", phrases: &[&["beside"], &["besides"]], per_10_000_words: 0 },
    Habit { name: ", also", phrases: &[&[",", "also"]], per_10_000_words: 0 },
    Habit { name: "each", phrases: &[&["each"]], per_10_000_words: 28 },
];

/// Checks every page and every package.
pub(crate) fn check() -> Result<(), String> {
    let mut texts = Vec::new();
    for page in pages()? {
        let text = read(&page)?;
        texts.push((page, text));
    }
    for package in packages()? {
        let mut comments = String::new();
        for file in sources(&package)? {
            comments.push_str(&documentation(&read(&file)?));
        }
        texts.push((package, comments));
    }
    let mut faults = Vec::new();
    for (path, text) in texts {
        let name = path.strip_prefix(process::root()).unwrap_or(&path).display().to_string();
        faults.extend(faults_of(&text).into_iter().map(|fault| format!("{name}: {fault}")));
    }
    if faults.is_empty() { Ok(()) } else { Err(format!("overused phrases\n{}", faults.join("\n"))) }
}

/// The README and the pages of `docs`.
fn pages() -> Result<Vec<PathBuf>, String> {
    let mut pages = vec![process::root().join("README.md")];
    add_files(&process::root().join("docs"), "md", &mut pages)?;
    pages.sort();
    Ok(pages)
}

/// The folders of the workspace's packages.
fn packages() -> Result<Vec<PathBuf>, String> {
    let metadata = process::metadata()?;
    let packages = metadata["packages"].as_array().into_iter().flatten();
    let folder = |manifest: &str| Path::new(manifest).parent().map(Path::to_owned);
    Ok(packages.filter_map(|package| folder(package["manifest_path"].as_str()?)).collect())
}

/// The files of a package with code.
fn sources(package: &Path) -> Result<Vec<PathBuf>, String> {
    let mut files = Vec::new();
    for folder in ["src", "tests"].map(|name| package.join(name)) {
        if folder.is_dir() {
            add_files(&folder, "rs", &mut files)?;
        }
    }
    Ok(files)
}

fn add_files(folder: &Path, extension: &str, files: &mut Vec<PathBuf>) -> Result<(), String> {
    for entry in fs::read_dir(folder).map_err(|error| at(folder, &error))? {
        let path = entry.map_err(|error| at(folder, &error))?.path();
        if path.is_dir() {
            add_files(&path, extension, files)?;
        } else if path.extension().is_some_and(|found| found == extension) {
            files.push(path);
        }
    }
    Ok(())
}

fn read(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| at(path, &error))
}

/// The documentation comments in a file, as Markdown.
fn documentation(code: &str) -> String {
    let comment = |line: &str| {
        let line = line.trim_start();
        line.strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"))
            .map(|text| format!("{text}\n"))
    };
    code.lines().filter_map(comment).collect()
}

/// The habits of which a page has more than its share.
fn faults_of(markdown: &str) -> Vec<String> {
    let words = words_of(&prose(markdown));
    let len = words.iter().filter(|word| *word != ",").count();
    let fault = |habit: &Habit| {
        let count: usize = habit.phrases.iter().map(|phrase| count(&words, phrase)).sum();
        let allowed = allowed(len, habit.per_10_000_words);
        (count > allowed)
            .then(|| format!("`{}` {count} times in {len} words, at most {allowed}", habit.name))
    };
    HABITS.iter().filter_map(fault).collect()
}

/// The share of a page of `len` words, at least one where the phrase may occur at all.
fn allowed(len: usize, per_10_000_words: usize) -> usize {
    (len * per_10_000_words).div_ceil(10_000)
}

fn count(words: &[String], phrase: &[&str]) -> usize {
    words.windows(phrase.len()).filter(|window| window.iter().eq(phrase)).count()
}

/// The text without fenced blocks, code, targets of links and generated parts.
fn prose(markdown: &str) -> String {
    let mut prose = String::new();
    let (mut in_block, mut is_generated) = (false, false);
    for line in markdown.lines() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        } else if is_mark(line, "begin") {
            is_generated = true;
        } else if is_mark(line, "end") {
            is_generated = false;
        } else if !in_block && !is_generated {
            prose.push_str(&without_code(line));
            prose.push('\n');
        }
    }
    prose
}

/// Whether a line is `<!-- NAME:WHICH -->` or `<!-- WHICH NAME -->`.
fn is_mark(line: &str, which: &str) -> bool {
    let name = line.strip_prefix("<!-- ").and_then(|rest| rest.strip_suffix(" -->"));
    name.is_some_and(|name| {
        name.strip_suffix(which).is_some_and(|name| name.ends_with(':'))
            || name.strip_prefix(which).is_some_and(|name| name.starts_with(' '))
    })
}

/// A line with `x` in place of code, and without the targets of links.
fn without_code(line: &str) -> String {
    let mut text = String::new();
    for (at, part) in line.split('`').enumerate() {
        text.push_str(if at % 2 == 0 { part } else { "x" });
    }
    let mut rest = text.as_str();
    let mut plain = String::new();
    while let Some((before, after)) = rest.split_once("](") {
        plain.push_str(before);
        rest = after.split_once(')').map_or("", |(_, rest)| rest);
    }
    plain + rest
}

/// The words in lower case, and the commas.
fn words_of(prose: &str) -> Vec<String> {
    let spaced = prose.replace(',', " , ").to_lowercase();
    let is_inner = |letter: char| letter.is_alphanumeric() || letter == ',';
    let words = spaced.split_whitespace().map(|word| word.trim_matches(|c| !is_inner(c)));
    words.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn phrases_are_counted_in_prose_alone() {
        let text = "Those\nof `what is` a list [each](each each), also.\n```sh\neach beside\n```\n\
                    <!-- table x:begin -->\nbeside\n<!-- table x:end -->\nThe end.";
        let words = words_of(&prose(text));
        let count = |phrase: &[&str]| count(&words, phrase);
        assert_eq!([count(&["those", "of"]), count(&["each"]), count(&["beside"])], [1, 1, 0]);
        assert_eq!([count(&["what", "is"]), count(&[",", "also"])], [0, 1]);
    }

    #[test]
    fn comments_of_documentation_are_prose_and_code_is_not() {
        let code = "//! One\nlet each = 1; // each\n    /// two `each`\n    fn three() {}\n";
        assert_eq!(documentation(code), " One\n two `each`\n");
    }

    #[test]
    fn a_page_may_have_its_share_of_a_phrase() {
        let text = |each: usize, len: usize| "each ".repeat(each) + &"word ".repeat(len - each);
        assert_eq!(faults_of(&text(28, 10_000)), Vec::<String>::new());
        assert_eq!(faults_of(&text(29, 10_000)), ["`each` 29 times in 10000 words, at most 28"]);
        assert_eq!(faults_of(&text(1, 10)), Vec::<String>::new());
        assert_eq!(faults_of("It is beside the log."), ["`beside` 1 times in 5 words, at most 0"]);
    }
}

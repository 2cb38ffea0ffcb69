//! Results: kept between runs, compared with the survivors that the documentation argues, and printed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::{self, File};
use std::io::Write as _;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::harness::Outcome;
use crate::tree::{Numbered, at_path};

/// A line of the file of results.
#[derive(Debug, Deserialize, Serialize)]
struct Line {
    key: String,
    /// Of the source file.
    hash: u64,
    outcome: Outcome,
}

/// Outcomes of this run and of earlier ones.
#[derive(Debug)]
pub(crate) struct Results {
    file: File,
    known: HashMap<String, (u64, Outcome)>,
}

impl Results {
    /// Reads the results of earlier runs, from a file of JSON lines.
    pub(crate) fn open(path: &Path) -> Result<Self, String> {
        let text = fs::read_to_string(path).unwrap_or_default();
        let lines = text.lines().filter_map(|line| serde_json::from_str::<Line>(line).ok());
        let known = lines.map(|line| (line.key, (line.hash, line.outcome))).collect();
        let file = File::options().append(true).create(true).open(path);
        Ok(Self { file: file.map_err(|error| at_path(path, &error))?, known })
    }

    /// The outcome for the file as it is now.
    pub(crate) fn get(&self, mutant: &Numbered) -> Option<Outcome> {
        let (hash, outcome) = self.known.get(&mutant.key)?;
        (*hash == mutant.hash).then_some(*outcome)
    }

    /// Whether another run may give another outcome although the source is the same.
    pub(crate) fn is_open(&self, mutant: &Numbered) -> bool {
        !matches!(self.get(mutant), Some(Outcome::Caught | Outcome::TimedOut | Outcome::Unviable))
    }

    pub(crate) fn set(&mut self, mutant: &Numbered, outcome: Outcome) -> Result<(), String> {
        let line = Line { key: mutant.key.clone(), hash: mutant.hash, outcome };
        let text = serde_json::to_string(&line).map_err(|error| error.to_string())?;
        writeln!(self.file, "{text}").map_err(|error| error.to_string())?;
        self.known.insert(line.key, (line.hash, outcome));
        Ok(())
    }
}

/// Keys of the survivors that a page argues: lines of the form "- `KEY`".
pub(crate) fn argued(page: &str) -> BTreeSet<String> {
    let keys = page.lines().filter_map(|line| {
        let (key, _) = line.trim().strip_prefix("- `")?.split_once('`')?;
        key.contains(".rs: ").then(|| key.to_owned())
    });
    keys.collect()
}

/// Prints the table, the survivors, and arguments without a mutant; returns the number of survivors that are not argued.
pub(crate) fn print(mutants: &[Numbered], results: &Results, argued: &BTreeSet<String>) -> usize {
    let keys: BTreeSet<&str> = mutants.iter().map(|mutant| mutant.key.as_str()).collect();
    stale(&keys, argued).for_each(|key| println!("Argued, but no mutant: {key}"));
    let mut rows = BTreeMap::<&str, [usize; 7]>::new();
    let mut open = 0;
    for mutant in mutants {
        let row = rows.entry(mutant.subject).or_default();
        row[0] += 1;
        let Some(outcome) = results.get(mutant) else { continue };
        row[1 + outcome as usize] += 1;
        if matches!(outcome, Outcome::Survived | Outcome::Unreached) {
            if argued.contains(&mutant.key) {
                row[6] += 1;
            } else {
                open += 1;
                println!("{outcome:?}: {}", mutant.key);
            }
        }
    }
    println!("\n| part | {} |\n|---{}|", COLUMNS.join(" | "), "|---".repeat(COLUMNS.len()));
    for (name, [all, caught, timed_out, survived, unreached, unviable, argued]) in rows {
        let viable = caught + timed_out + survived + unreached;
        let not_run = all - unviable - viable;
        let part = (caught + timed_out) as f64 * 100.0 / viable.max(1) as f64;
        let numbers =
            [all, not_run, unviable, viable, caught, timed_out, survived, unreached, argued];
        let numbers = numbers.map(|number| number.to_string()).join(" | ");
        println!("| {name} | {numbers} | {part:.1} % |");
    }
    open
}

/// The arguments about files of these mutants that are about none of them.
fn stale<'a>(
    keys: &BTreeSet<&str>,
    argued: &'a BTreeSet<String>,
) -> impl Iterator<Item = &'a String> {
    let file = |key: &str| key.split_once(": ").map(|(file, _)| file.to_owned());
    let files: BTreeSet<_> = keys.iter().map(|key| file(key)).collect();
    argued.iter().filter(move |key| files.contains(&file(key)) && !keys.contains(key.as_str()))
}

/// Columns of the table after the name.
const COLUMNS: [&str; 10] = [
    "mutants",
    "not run",
    "unviable",
    "viable",
    "caught",
    "timed out",
    "survived",
    "unreached",
    "argued",
    "caught or timed out, of viable",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_argues_the_mutants_of_its_lists() {
        let page = "# Title\n\n- `src/a.rs: A::f: return 0`: equal to `A`.\n- `cargo xtask mutants`\n  \
                    - `b.rs: g: replace | with ^ in a | b`";
        let argued: Vec<String> = argued(page).into_iter().collect();
        assert_eq!(argued, ["b.rs: g: replace | with ^ in a | b", "src/a.rs: A::f: return 0"]);
    }

    #[test]
    fn an_argument_is_stale_if_its_file_has_other_mutants_alone() {
        let argued = ["a.rs: f: return 0", "a.rs: g: return 0", "b.rs: f: return 0"];
        let argued = BTreeSet::from(argued.map(str::to_owned));
        let stale: Vec<_> = stale(&BTreeSet::from(["a.rs: f: return 0"]), &argued).collect();
        assert_eq!(stale, ["a.rs: g: return 0"]);
    }
}

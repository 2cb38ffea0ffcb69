//! `cargo xtask findings`: the scripts of `findings/`, which state how other projects' software treats valid input.
//! They install public packages, so they run outside CI.

use std::fs;
use std::time::Instant;

use clap::Args;

use crate::process::{self, at};
use crate::programs;

/// Which scripts to run.
#[derive(Args, Clone, Debug)]
pub(crate) struct Options {
    /// Scripts to run, by name; all by default.
    names: Vec<String>,
}

/// Runs the scripts one after the other. A script whose programs are missing is left out; one that fails fails the command.
pub(crate) fn run(options: &Options) -> Result<(), String> {
    let wanted = select(&scripts()?, &options.names)?;
    let (mut changed, mut left_out) = (Vec::new(), Vec::new());
    for name in &wanted {
        let missing = missing(name)?;
        if !missing.is_empty() {
            left_out.push(format!("{name}: needs {}", missing.join(", ")));
            continue;
        }
        println!("=== {name}");
        let started = Instant::now();
        match process::run(&mut process::command("sh", &[&path(name)])) {
            Ok(()) => println!("as recorded, {:.0} s", started.elapsed().as_secs_f64()),
            Err(_) => changed.push(name.as_str()),
        }
    }
    println!("\nas recorded: {}", wanted.len() - changed.len() - left_out.len());
    left_out.iter().for_each(|script| println!("not run: {script}"));
    if changed.is_empty() {
        Ok(())
    } else {
        Err(format!("changed or not installed: {}", changed.join(", ")))
    }
}

/// The names of all scripts, in order.
fn scripts() -> Result<Vec<String>, String> {
    let folder = process::root().join(FOLDER);
    let entries = fs::read_dir(&folder).map_err(|error| at(&folder, &error))?;
    let files = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    let names = files.filter_map(|file| Some(file.strip_suffix(".sh")?.to_owned()));
    let mut names: Vec<String> = names.filter(|name| name != SHARED).collect();
    names.sort_unstable();
    Ok(names)
}

/// The scripts to run. An unknown name is an error.
fn select(scripts: &[String], names: &[String]) -> Result<Vec<String>, String> {
    if names.is_empty() {
        return Ok(scripts.to_vec());
    }
    match names.iter().find(|name| !scripts.contains(name)) {
        None => Ok(names.to_vec()),
        Some(name) => {
            Err(format!("unknown finding `{name}`: expected one of {}", scripts.join(", ")))
        }
    }
}

/// The programs that a script needs and that are not on the path.
fn missing(name: &str) -> Result<Vec<String>, String> {
    let path = process::root().join(path(name));
    let script = fs::read_to_string(&path).map_err(|error| at(&path, &error))?;
    let needed = needed(&script).ok_or_else(|| format!("{}: no line `needs`", path.display()))?;
    Ok(needed.into_iter().filter(|program| !programs::is_present(program)).collect())
}

/// The programs in the line `needs` of a script.
fn needed(script: &str) -> Option<Vec<String>> {
    let line = script.lines().find_map(|line| line.strip_prefix("needs "))?;
    Some(line.split_whitespace().map(str::to_owned).collect())
}

fn path(name: &str) -> String {
    format!("{FOLDER}/{name}.sh")
}

const FOLDER: &str = "findings";

/// The shared code of the scripts is no finding.
const SHARED: &str = "common";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_script_says_what_it_needs_and_is_in_the_table_with_its_name() {
        let page = fs::read_to_string(process::root().join("findings/README.md")).unwrap();
        let rows = page.lines().filter_map(|line| line.strip_prefix("| [`")?.split('`').next());
        let rows: Vec<&str> = rows.collect();
        let scripts = scripts().unwrap();
        assert!(!scripts.is_empty());
        for name in &scripts {
            let text = fs::read_to_string(process::root().join(path(name))).unwrap();
            assert!(needed(&text).is_some_and(|programs| !programs.is_empty()), "{name}");
        }
        let mut sorted = rows.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, scripts);
    }

    #[test]
    fn scripts_are_selected_by_name() {
        let scripts = ["a".to_owned(), "b".to_owned()];
        assert_eq!(select(&scripts, &[]), Ok(scripts.to_vec()));
        assert_eq!(select(&scripts, &["b".to_owned()]), Ok(vec!["b".to_owned()]));
        let error = select(&scripts, &["c".to_owned()]).unwrap_err();
        assert_eq!(error, "unknown finding `c`: expected one of a, b");
    }

    #[test]
    fn the_needed_programs_are_those_of_the_line() {
        assert_eq!(needed("#!/bin/sh\nneeds go npm\n"), Some(vec!["go".into(), "npm".into()]));
        assert_eq!(needed("#!/bin/sh\n"), None);
    }
}

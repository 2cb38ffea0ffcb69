//! Tests and stages that were left out because files, programs or processor instructions are missing, which is not
//! the same as passed: the log in which they are noted, and its summary.
//!
//! A test that needs something writes a line when it starts: `ran NAME`, or `left out NAME: NEED`.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use crate::process::{self, at};

/// Empties the log.
pub(crate) fn clear() -> Result<(), String> {
    let log = path();
    let parent = log.parent().map_or(Ok(()), fs::create_dir_all);
    parent.and_then(|()| fs::write(&log, "")).map_err(|error| at(&log, &error))
}

/// Passes the log to tests, and the captures if they lie next to the clone and nothing else is set.
pub(crate) fn configure(tests: &mut Command) {
    tests.env("WIREPROOF_FIXTURE_LOG", path());
    if let (None, Some(captures)) = (std::env::var_os(CAPTURES), captures_beside()) {
        tests.env(CAPTURES, captures);
    }
}

/// Notes that `name` is left out without `need`.
pub(crate) fn note(name: &str, need: &str) -> Result<(), String> {
    let log = path();
    let file = OpenOptions::new().create(true).append(true).open(&log);
    let line = format!("left out {name}: {need}\n");
    file.and_then(|mut file| file.write_all(line.as_bytes())).map_err(|error| at(&log, &error))
}

fn path() -> PathBuf {
    process::target("fixture-log")
}

/// The shared captures, if they lie next to the clone.
fn captures_beside() -> Option<PathBuf> {
    process::root().join("../shared/data").canonicalize().ok()
}

/// The contents of the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct LeftOut {
    /// Number of tests that were not left out.
    ran: u64,
    /// Names and needs of the tests and stages left out.
    left_out: Vec<(String, String)>,
}

impl LeftOut {
    /// Reads the log.
    pub(crate) fn read() -> Result<Self, String> {
        let log = path();
        fs::read_to_string(&log).map(|text| Self::parse(&text)).map_err(|error| at(&log, &error))
    }

    fn parse(text: &str) -> Self {
        let mut log = Self::default();
        for line in text.lines() {
            if let Some(line) = line.strip_prefix("left out ") {
                let (name, need) = line.split_once(": ").unwrap_or((line, ""));
                log.left_out.push((name.to_owned(), need.to_owned()));
            } else if line.starts_with("ran ") {
                log.ran += 1;
            }
        }
        log.left_out.sort();
        log
    }

    /// Prints the tests and stages left out.
    pub(crate) fn print(&self) {
        println!(
            "tests that need files or programs of other projects: {} ran, {} left out",
            self.ran,
            self.left_out.len()
        );
        for (name, need) in &self.left_out {
            println!("  left out: {name}, for want of {need}");
        }
        for instructions in missing_instructions() {
            println!("  left out: back ends for {instructions}, which this processor lacks");
        }
    }

    /// Rejects a run that left out tests over the captures although they lie next to the clone.
    pub(crate) fn check(&self) -> Result<(), String> {
        self.check_with(captures_beside().is_some())
    }

    fn check_with(&self, captures_are_there: bool) -> Result<(), String> {
        let over_captures = self.left_out.iter().filter(|(_, need)| need == CAPTURES);
        match over_captures.count() {
            count @ 1.. if captures_are_there => Err(format!(
                "{count} tests over captures were left out, although ../shared/data is there: \
                 unset {CAPTURES}, or set it to that folder"
            )),
            _ => Ok(()),
        }
    }
}

/// Instruction sets with a back end that cannot be tested on this processor.
fn missing_instructions() -> Vec<&'static str> {
    let mut missing = Vec::new();
    #[cfg(target_arch = "x86_64")]
    {
        let present = [
            ("SSSE3", is_x86_feature_detected!("ssse3")),
            ("SHA-NI", is_x86_feature_detected!("sha")),
            ("AVX2", is_x86_feature_detected!("avx2")),
            ("AVX-512", is_x86_feature_detected!("avx512f")),
            ("AVX-512 IFMA", is_x86_feature_detected!("avx512ifma")),
        ];
        missing.extend(present.iter().filter(|(_, is_there)| !is_there).map(|(name, _)| *name));
    }
    if cfg!(not(target_arch = "aarch64")) {
        missing.push("ARMv8 SHA-2");
    }
    missing
}

/// The variable that names the folder of captures.
const CAPTURES: &str = "WIREPROOF_FIXTURES";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tests_that_ran_are_counted_and_the_others_are_named_with_what_they_lacked() {
        let log =
            LeftOut::parse("ran a::b\nleft out z: WIREPROOF_FIXTURES\nleft out c: node\nran d\n");
        let named = |name: &str, need: &str| (name.to_owned(), need.to_owned());
        let left_out = vec![named("c", "node"), named("z", CAPTURES)];
        assert_eq!(log, LeftOut { ran: 2, left_out });
    }

    #[test]
    fn a_test_over_captures_may_be_left_out_only_where_there_are_none() {
        let log = LeftOut::parse("ran a\nleft out b: WIREPROOF_FIXTURES\n");
        assert_eq!(log.check_with(false), Ok(()));
        assert!(log.check_with(true).is_err_and(|fault| fault.starts_with("1 test")));
        assert_eq!(LeftOut::parse("ran a\nleft out b: python3\n").check_with(true), Ok(()));
    }
}

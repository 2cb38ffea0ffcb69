//! Where are the programs, and which of them are there?
//!
//! `cargo xtask test` installs them and names the folder in `WIREPROOF_INTEROP`. A test that lacks one
//! of its programs is left out, which is not the same as passed; `WIREPROOF_FIXTURE_LOG` names the file
//! that is told.

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};

/// A part of what can be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The PDS and the PLC directory, which need Node.
    Pds,
    /// The relay, which needs Go.
    Relay,
    /// The readers, which need Node.
    Readers,
}

impl Part {
    /// What stands in the folder once the part is installed.
    fn product(self) -> &'static str {
        match self {
            Self::Pds => "pds/node_modules",
            Self::Relay => "relay/relay",
            Self::Readers => "readers/node_modules",
        }
    }
}

/// The programs for one test.
#[derive(Clone, Debug)]
pub struct Kit {
    dir: PathBuf,
    logs: PathBuf,
}

impl Kit {
    /// Opens the kit for the test called `test`, and notes that it runs; `None` notes that it is left
    /// out. Called by [`kit!`](crate::kit!), which knows the test's name.
    ///
    /// # Panics
    /// If the folder for logs cannot be made.
    pub fn open(test: &str, parts: &[Part]) -> Option<Self> {
        let dir = std::env::var_os("WIREPROOF_INTEROP").filter(|dir| !dir.is_empty());
        let dir = dir.map(PathBuf::from);
        let has_all = |dir: &PathBuf| parts.iter().all(|part| dir.join(part.product()).exists());
        let dir = dir.filter(has_all);
        note(if dir.is_some() { "ran" } else { "left out" }, test);
        let dir = dir?;
        let logs = dir.join("logs").join(test.replace("::", "."));
        // The logs of a former run tell nothing of this one.
        let _ = fs::remove_dir_all(&logs);
        fs::create_dir_all(&logs).expect("a folder for logs");
        Some(Self { dir, logs })
    }

    /// A path in it.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.dir.join(path)
    }

    /// The file to which a program of this test tells what is for a person.
    pub(crate) fn log(&self, program: &str) -> PathBuf {
        self.logs.join(format!("{program}.log"))
    }

    /// The Node that the packages of `folder` bring, or else the machine's.
    pub(crate) fn node(&self, folder: &Path) -> PathBuf {
        let own = folder.join("node_modules/.bin/node");
        if own.exists() { own } else { PathBuf::from("node") }
    }
}

/// Opens the [`Kit`] for the test that it stands in, or returns from that test, having noted that it is
/// left out.
#[macro_export]
macro_rules! kit {
    ($($part:ident),+) => {{
        fn here() {}
        let test = std::any::type_name_of_val(&here);
        let test = test.trim_end_matches("::here").trim_end_matches("::{{closure}}");
        match $crate::kit::Kit::open(test, &[$($crate::kit::Part::$part),+]) {
            Some(kit) => kit,
            None => return,
        }
    }};
}

fn note(outcome: &str, test: &str) {
    let Some(log) = std::env::var_os("WIREPROOF_FIXTURE_LOG") else { return };
    let mut log = OpenOptions::new().create(true).append(true).open(log).expect("the fixture log");
    // One write, so that tests that end together do not mix their lines.
    log.write_all(format!("{outcome} {test}\n").as_bytes()).expect("the fixture log takes a line");
}

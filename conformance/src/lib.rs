//! Shared test support: the locations of external files, and a log of the tests that ran or were left out.
//!
//! External data is not stored in this repository. A test that needs it names its [`Source`], an
//! environment variable that holds a folder:
//!
//! - variable set: the test runs, and a missing file is a failure;
//! - variable unset: the test is *left out*, which is not the same as passed.
//!
//! A test that needs a program of another project is left out in the same way ([`program!`]). Every
//! such test writes its outcome to the file that `WIREPROOF_FIXTURE_LOG` names ([`record`]), and
//! `cargo xtask test` prints the tests that were left out, with the reasons.

#![forbid(unsafe_code)]

use std::fs::{self, OpenOptions};
use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};

/// A source of external files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A folder of captures and vectors that is not published, in `WIREPROOF_FIXTURES`.
    Captures,
    /// The unpacked indigo Go module, in `WIREPROOF_INDIGO`.
    Indigo,
}

impl Source {
    /// The environment variable that names the folder.
    pub const fn variable(self) -> &'static str {
        match self {
            Self::Captures => "WIREPROOF_FIXTURES",
            Self::Indigo => "WIREPROOF_INDIGO",
        }
    }

    /// Opens the folder for the test called `test` and records whether it runs. Called by
    /// [`fixtures!`], which knows the test's name.
    pub fn open(self, test: &str) -> Option<Folder> {
        let root = std::env::var_os(self.variable()).filter(|root| !root.is_empty());
        record(test, self.variable(), root.is_some());
        Some(Folder { source: self, root: root?.into() })
    }
}

/// Opens a [`Source`] for the enclosing test, or returns from that test after recording that it is left
/// out.
#[macro_export]
macro_rules! fixtures {
    ($source:ident) => {
        match $crate::Source::$source.open($crate::test_name!()) {
            Some(folder) => folder,
            None => return,
        }
    };
}

/// Returns from the enclosing test after recording that it is left out, unless this program is installed.
#[macro_export]
macro_rules! program {
    ($program:literal) => {
        if !$crate::has_program($program, $crate::test_name!()) {
            return;
        }
    };
}

/// The path of the enclosing test function.
#[macro_export]
macro_rules! test_name {
    () => {{
        fn here() {}
        let path = std::any::type_name_of_val(&here);
        path.trim_end_matches("::here").trim_end_matches("::{{closure}}")
    }};
}

/// An address for a server that ends and starts again. No other program takes it meanwhile: it is an address of its own, where there
/// are several for this machine.
///
/// # Panics
/// If there is no such address.
pub fn own_address() -> SocketAddr {
    static NUMBER: AtomicU8 = AtomicU8::new(0);
    let [_, _, high, low] = std::process::id().to_be_bytes();
    let number = NUMBER.fetch_add(1, Ordering::Relaxed) % 250;
    let address = if cfg!(target_os = "linux") {
        Ipv4Addr::new(127, number + 1, high, low.clamp(1, 254))
    } else {
        Ipv4Addr::LOCALHOST
    };
    let free = TcpListener::bind((address, 0)).expect("an address of this machine");
    free.local_addr().expect("it is bound")
}

/// Whether a program prints its version; records whether `test` runs. Called by [`program!`].
pub fn has_program(program: &str, test: &str) -> bool {
    let mut command = Command::new(program);
    command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    let is_there = command.status().is_ok_and(|status| status.success());
    record(test, program, is_there);
    is_there
}

/// Records in the log that `test` runs since `need` is there, or that it is left out without it.
///
/// # Panics
/// If the log cannot be written.
pub fn record(test: &str, need: &str, is_there: bool) {
    let Some(log) = std::env::var_os("WIREPROOF_FIXTURE_LOG") else { return };
    let line =
        if is_there { format!("ran {test}\n") } else { format!("left out {test}: {need}\n") };
    let mut log = OpenOptions::new().create(true).append(true).open(log).expect("the fixture log");
    // One write, so that tests that end together do not mix their lines.
    log.write_all(line.as_bytes()).expect("the fixture log takes a line");
}

/// A folder that must have every file that a test asks for.
#[derive(Clone, Debug)]
pub struct Folder {
    source: Source,
    root: PathBuf,
}

impl Folder {
    /// The path of a file or folder in it.
    pub fn path(&self, path: &str) -> PathBuf {
        self.root.join(path)
    }

    /// The bytes of a file.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn bytes(&self, path: &str) -> Vec<u8> {
        fs::read(self.path(path)).unwrap_or_else(|error| self.lacks(path, &error))
    }

    /// The text of a file.
    ///
    /// # Panics
    /// If it cannot be read.
    pub fn text(&self, path: &str) -> String {
        fs::read_to_string(self.path(path)).unwrap_or_else(|error| self.lacks(path, &error))
    }

    /// The paths of the files in a folder and its folders that end in `suffix`, in order.
    ///
    /// # Panics
    /// If the folder cannot be read or has none.
    pub fn files(&self, folder: &str, suffix: &str) -> Vec<String> {
        let mut found = Vec::new();
        self.collect(&self.path(folder), suffix, &mut found);
        assert!(!found.is_empty(), "{} has no {suffix} in {folder}", self.source.variable());
        found.sort();
        found
    }

    fn collect(&self, folder: &Path, suffix: &str, found: &mut Vec<String>) {
        let entries = fs::read_dir(folder)
            .unwrap_or_else(|error| self.lacks(&folder.display().to_string(), &error));
        for entry in entries {
            let path = entry.expect("a folder entry").path();
            if path.is_dir() {
                self.collect(&path, suffix, found);
            } else if path.to_string_lossy().ends_with(suffix) {
                let inside = path.strip_prefix(&self.root).expect("found below the root");
                found.push(inside.to_str().expect("UTF-8 file names").to_owned());
            }
        }
    }

    fn lacks(&self, path: &str, error: &std::io::Error) -> ! {
        panic!("{} is set, but {path} cannot be read: {error}", self.source.variable())
    }
}

/// The facts that `MANIFEST.tsv` states of the files in its folder: the first column, the path, and the
/// last one.
#[derive(Clone, Debug)]
pub struct Manifest {
    text: String,
}

impl Manifest {
    /// Reads the manifest of `folder`.
    pub fn of(folder: &Folder) -> Self {
        Self { text: folder.text("atproto/MANIFEST.tsv") }
    }

    /// The paths with their facts, in order.
    pub fn rows(&self) -> impl Iterator<Item = (&str, &str)> {
        self.text.lines().skip(1).filter_map(|line| {
            let mut columns = line.split('\t');
            Some((columns.next()?, columns.nth(5)?))
        })
    }

    /// The facts of the file at `path`.
    ///
    /// # Panics
    /// If the manifest does not list it.
    pub fn facts(&self, path: &str) -> &str {
        let found = self.rows().find(|(listed, _)| *listed == path);
        found.unwrap_or_else(|| panic!("the manifest does not list {path}")).1
    }
}

/// The value of `name` in a list of facts such as `roots=1; blocks=29`.
pub fn fact<'f>(facts: &'f str, name: &str) -> Option<&'f str> {
    facts.split("; ").find_map(|fact| fact.strip_prefix(name)?.strip_prefix('='))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fact_is_found_by_its_whole_name() {
        let facts = "CARv1; roots=1; blocks=29; cid_mismatch=0";
        assert_eq!(fact(facts, "blocks"), Some("29"));
        assert_eq!(fact(facts, "roots"), Some("1"));
        assert_eq!(fact(facts, "block"), None);
        assert_eq!(fact(facts, "CARv1"), None);
    }
}

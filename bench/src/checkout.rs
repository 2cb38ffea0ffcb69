//! Peers whose source may be a checkout that a variable names, instead of the package that their lock file names.

use std::env;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the source of such a peer may be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Checkout {
    variable: &'static str,
    /// The folder; `None` if the variable is not set.
    pub(crate) dir: Option<PathBuf>,
}

impl Checkout {
    /// The checkout of a peer; `None` for one that is always built from its package.
    ///
    /// # Errors
    /// If the variable names no folder.
    pub(crate) fn of(id: &str) -> Result<Option<Self>, String> {
        let Some((_, variable)) = VARIABLES.into_iter().find(|(peer, _)| *peer == id) else {
            return Ok(None);
        };
        let dir = env::var_os(variable).filter(|value| !value.is_empty());
        let dir =
            dir.map(|dir| fs::canonicalize(dir).map_err(|error| format!("{variable}: {error}")));
        Ok(Some(Self { variable, dir: dir.transpose()? }))
    }

    /// The reason of a failed build, with the fix if the package was not available.
    pub(crate) fn explain(&self, reason: String) -> String {
        match self.dir {
            Some(_) => reason,
            None => format!(
                "its source is not available ({reason}); {} may name a checkout",
                self.variable
            ),
        }
    }
}

/// Writes a Go workspace that builds `runner` with the module in `checkout`.
///
/// # Errors
/// If the file cannot be written.
pub(crate) fn write_go_workspace(file: &Path, runner: &Path, checkout: &Path) -> io::Result<()> {
    let [runner, checkout] =
        [runner, checkout].map(|dir| format!("{:?}", dir.display().to_string()));
    fs::write(file, format!("go 1.26\n\nuse (\n\t{runner}\n\t{checkout}\n)\n"))
}

/// The peers and their variables.
const VARIABLES: [(&str, &str); 2] =
    [("go-atmos", "WIREPROOF_ATMOS"), ("zig-zat", "WIREPROOF_ZAT")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_peer_without_its_source_is_reported_with_the_variable() {
        assert_eq!(Checkout::of("go-raw"), Ok(None));
        let missing = Checkout { variable: "WIREPROOF_ZAT", dir: None };
        assert_eq!(
            missing.explain("zig: 403 Forbidden".to_owned()),
            "its source is not available (zig: 403 Forbidden); WIREPROOF_ZAT may name a checkout"
        );
        let present = Checkout { dir: Some(PathBuf::from("/zat")), ..missing };
        assert_eq!(present.explain("zig: syntax".to_owned()), "zig: syntax");
    }
}

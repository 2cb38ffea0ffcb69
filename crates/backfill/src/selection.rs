//! The accounts of a backfill: the accounts of a list, without the excluded ones.

use std::collections::HashSet;
use std::path::Path;

use atproto::syntax::Did;
use net::http::Url;

use program::failure::Failure;
use program::inputs::{InputKind, Inputs};

/// Selected accounts, and excluded accounts and hosts.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// `None` for all accounts.
    dids: Option<HashSet<Box<str>>>,
    excluded_dids: HashSet<Box<str>>,
    /// Names in lower case.
    excluded_hosts: HashSet<Box<str>>,
}

impl Selection {
    /// These accounts, by their DIDs, or all; without the excluded ones: DIDs, and names of hosts.
    ///
    /// # Errors
    /// If one that must be a DID is none.
    pub fn new<T: AsRef<str>>(accounts: Option<&[T]>, excluded: &[T]) -> Result<Self, Failure> {
        let place = Path::new("the selected accounts");
        let parse = |dids: &[T]| dids.iter().map(|text| did(place, text.as_ref())).collect();
        let mut selection = Self { dids: accounts.map(parse).transpose()?, ..Self::default() };
        excluded.iter().try_for_each(|text| selection.exclude(text.as_ref()))?;
        Ok(selection)
    }

    /// Reads the files of `--dids` and `--exclude`, if there are any.
    ///
    /// # Errors
    /// If a file cannot be read, or has a line that is no DID.
    pub fn read(dids: Option<&Path>, excluded: Option<&Path>) -> Result<Self, Failure> {
        let mut selection = Self::default();
        if let Some(path) = dids {
            let dids: Result<_, Failure> =
                lines(path)?.iter().map(|line| did(path, line)).collect();
            selection.dids = Some(dids?);
        }
        for line in excluded.map(lines).transpose()?.unwrap_or_default() {
            selection.exclude(&line)?;
        }
        Ok(selection)
    }

    fn exclude(&mut self, text: &str) -> Result<(), Failure> {
        if text.starts_with("did:") {
            self.excluded_dids.insert(did(Path::new("--exclude"), text)?)
        } else {
            self.excluded_hosts.insert(text.to_ascii_lowercase().into())
        };
        Ok(())
    }

    /// Whether an account is selected and not excluded.
    pub(crate) fn has_account(&self, did: &str) -> bool {
        let is_selected = self.dids.as_ref().is_none_or(|dids| dids.contains(did));
        is_selected && !self.excluded_dids.contains(did)
    }

    /// Whether the accounts of a host are not excluded.
    pub(crate) fn has_host(&self, host: &Url) -> bool {
        let name = host.host_str().unwrap_or_default();
        let with_port = host.port().map(|port| format!("{name}:{port}"));
        let mut names = [Some(name), with_port.as_deref()].into_iter().flatten();
        !names.any(|name| self.excluded_hosts.contains(name))
    }
}

/// The lines of a file that are neither empty nor comments.
pub(crate) fn lines(path: &Path) -> Result<Vec<String>, Failure> {
    let arguments = [format!("@{}", path.display())];
    Inputs::new(&arguments, InputKind::Names).map(|input| input.map(|input| input.name)).collect()
}

fn did(path: &Path, line: &str) -> Result<Box<str>, Failure> {
    Did::parse(line)
        .map(|did| did.as_str().into())
        .map_err(|error| Failure::Usage(format!("{}: {line}: {error}", path.display())))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn accounts_and_hosts_are_left_out_by_name() {
        let dir = tempfile::tempdir().unwrap();
        let [dids, excluded] = ["dids", "excluded"].map(|name| dir.path().join(name));
        fs::write(&dids, "did:web:a.test\n# a comment\n\ndid:web:b.test\n").unwrap();
        fs::write(&excluded, "did:web:b.test\nPDS.example.com\nlocalhost:4481\n").unwrap();
        let selection = Selection::read(Some(&dids), Some(&excluded)).unwrap();
        let has = |did| selection.has_account(did);
        assert!(has("did:web:a.test") && !has("did:web:b.test") && !has("did:web:c.test"));
        let has = |url: &str| selection.has_host(&url.parse().unwrap());
        assert!(!has("https://pds.example.com") && !has("https://pds.example.com:8443"));
        assert!(!has("http://localhost:4481") && has("http://localhost:4482"));
        assert!(Selection::default().has_account("did:web:c.test"));
    }

    #[test]
    fn a_line_that_is_no_did_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let dids = dir.path().join("dids");
        fs::write(&dids, "nobody\n").unwrap();
        let failure = Selection::read(Some(&dids), None).unwrap_err();
        assert!(failure.message().unwrap().contains("nobody"), "{failure:?}");
    }
}

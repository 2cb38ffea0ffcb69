//! The selection of accounts and collections by `--dids` and `--collections`.

use std::collections::HashSet;
use std::path::Path;

use wireproof::atproto::syntax::{Did, Nsid};
use wireproof::net::firehose::AccountSet;

use crate::failure::Failure;

/// Selected accounts and collections. Events without an account are always selected, and collections
/// select commits only.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// All accounts if empty. Clones of the selection share them.
    pub(super) dids: AccountSet,
    /// Names of collections, and prefixes that end in a dot. All collections if empty.
    pub(super) collections: Vec<String>,
}

impl Selection {
    /// Parses the arguments.
    pub(super) fn new(dids: &[String], collections: &[String]) -> Result<Self, Failure> {
        let collections =
            collections.iter().map(|text| collection(text)).collect::<Result<_, _>>()?;
        Ok(Self { dids: read_accounts(dids)?.into(), collections })
    }

    pub(super) fn has_account(&self, did: Option<&str>) -> bool {
        self.dids.is_empty() || did.is_none_or(|did| self.dids.contains(did))
    }

    /// Whether a commit with operations at these paths is selected.
    pub(super) fn has_any<'p>(&self, mut paths: impl Iterator<Item = &'p str>) -> bool {
        self.collections.is_empty() || paths.any(|path| self.has_path(path))
    }

    pub(super) fn has_path(&self, path: &str) -> bool {
        let name = path.split_once('/').map_or(path, |(name, _)| name);
        let is_match = |selected: &String| match selected.ends_with('.') {
            true => name.starts_with(selected.as_str()),
            false => name == selected,
        };
        self.collections.is_empty() || self.collections.iter().any(is_match)
    }
}

/// The accounts of `--dids`, some of which are in files. Without an argument there are none.
pub(super) fn read_accounts(dids: &[String]) -> Result<HashSet<String>, Failure> {
    let mut all = HashSet::new();
    for text in dids {
        match text.strip_prefix('@') {
            Some(path) => read_dids(Path::new(path), &mut all)?,
            None => drop(all.insert(did(text, "--dids")?)),
        }
    }
    match all.is_empty() && !dids.is_empty() {
        // None would select all of them.
        true => Err(Failure::Usage(format!("--dids {}: no account", dids.join(",")))),
        false => Ok(all),
    }
}

fn read_dids(path: &Path, all: &mut HashSet<String>) -> Result<(), Failure> {
    let text = std::fs::read_to_string(path).map_err(Failure::file(path))?;
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if !line.is_empty() && !line.starts_with('#') {
            let place = format!("{}, line {}", path.display(), number + 1);
            all.insert(did(line, &place)?);
        }
    }
    Ok(())
}

fn did(text: &str, place: &str) -> Result<String, Failure> {
    match Did::parse(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(error) => Err(Failure::Usage(format!("{place}: `{text}`: {error}"))),
    }
}

/// `app.bsky.graph.*` becomes `app.bsky.graph.`, if it is the prefix of an NSID.
fn collection(text: &str) -> Result<String, Failure> {
    let (name, selected) = match text.strip_suffix(".*") {
        Some(start) => (format!("{start}.a.a"), format!("{start}.")),
        None => (text.to_owned(), text.to_owned()),
    };
    match Nsid::parse(&name) {
        Ok(_) => Ok(selected),
        Err(error) => Err(Failure::Usage(format!("--collections: `{text}`: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn selection(dids: &[&str], collections: &[&str]) -> Result<Selection, Failure> {
        let texts =
            |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        Selection::new(&texts(dids), &texts(collections))
    }

    #[test]
    fn an_empty_selection_is_everything() {
        let all = selection(&[], &[]).unwrap();
        assert!(all.has_account(Some("did:web:a.test")) && all.has_account(None));
        assert!(all.has_any(std::iter::empty()) && all.has_path("a.b.c/self"));
    }

    #[test]
    fn a_name_matches_exactly_and_a_prefix_ends_at_a_dot() {
        let some = selection(&[], &["app.bsky.feed.post", "app.bsky.graph.*", "org.*"]).unwrap();
        assert!(some.has_path("app.bsky.feed.post/3k"));
        assert!(some.has_path("app.bsky.graph.follow/3k") && some.has_path("org.b.c/3k"));
        assert!(
            !some.has_path("app.bsky.feed.postgate/3k") && !some.has_path("app.bsky.graphs.x/3k")
        );
        assert!(!some.has_any(std::iter::empty()));
        assert!(some.has_any(["x.y.z/a", "org.a.b/c"].into_iter()));
    }

    #[test]
    fn accounts_come_from_arguments_and_from_files() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("dids");
        std::fs::write(&path, "# ours\ndid:web:a.test\n\n  did:web:b.test  \n").unwrap();
        let file = format!("@{}", path.display());
        let some = selection(&[&file, "did:web:c.test"], &[]).unwrap();
        assert_eq!(some.dids.len(), 3);
        assert!(
            some.has_account(Some("did:web:b.test")) && !some.has_account(Some("did:web:d.test"))
        );
        assert!(some.has_account(None));
        std::fs::write(&path, "# none\n").unwrap();
        assert!(matches!(selection(&[&file], &[]), Err(Failure::Usage(_))), "not all accounts");
        std::fs::write(&path, "did:web:a.test\nnobody\n").unwrap();
        let Err(Failure::Usage(message)) = selection(&[&file], &[]) else { panic!("accepted") };
        assert!(message.contains("line 2"), "{message}");
    }

    #[test]
    fn malformed_dids_and_names_are_refused() {
        for (dids, collections) in
            [(&["x"][..], &[][..]), (&[], &["post"]), (&[], &["a..*"]), (&[], &["*"])]
        {
            assert!(matches!(selection(dids, collections), Err(Failure::Usage(_))), "{dids:?}");
        }
    }
}

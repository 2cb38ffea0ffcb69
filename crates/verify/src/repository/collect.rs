//! All faults of a repository instead of the first.

use atproto::repo::{Archive, Repository};
use crypto::PublicKey;

use super::records::SoundRecords;
use super::{
    Options, RepositoryRejection, check_commit, check_signature, in_archive, records, tree,
};

/// The faults of an export in the order in which they are found, at most `max_faults`. None are the
/// answer where [`verify`](super::verify) accepts; with `key` left out, where
/// [`verify_without_signature`](super::verify_without_signature) does.
///
/// Each fault costs what stands below it, and the work goes on beside it: a block with a wrong hash
/// is taken as missing, a node that is none has no records. Without a commit there is no tree to look
/// at.
pub fn collect_rejections(
    export: &[u8],
    did: Option<&str>,
    key: Option<&PublicKey>,
    options: &Options,
    max_faults: usize,
) -> Vec<RepositoryRejection> {
    let mut faults = Faults { found: Vec::new(), max: max_faults };
    // The error is the one that made the list full, or that left nothing to go on with.
    if let Err(last) = faults.collect(export, did, key, options) {
        faults.found.push(last);
    }
    faults.found.truncate(max_faults);
    faults.found
}

struct Faults {
    found: Vec<RepositoryRejection>,
    max: usize,
}

impl Faults {
    /// Keeps a fault, or gives it back as the last.
    fn note(&mut self, fault: RepositoryRejection) -> Result<(), RepositoryRejection> {
        if self.found.len() + 1 >= self.max {
            return Err(fault);
        }
        self.found.push(fault);
        Ok(())
    }

    fn collect(
        &mut self,
        export: &[u8],
        did: Option<&str>,
        key: Option<&PublicKey>,
        options: &Options,
    ) -> Result<(), RepositoryRejection> {
        let mut sound = SoundRecords::new(export, options);
        let (checked, mut see) = (options.checked_archive(), |block: &_| sound.see(block));
        let archive = Archive::read_visiting(export, &checked, &mut see, &mut |error| {
            self.note(in_archive(export, error)).map_err(|_| error)
        });
        let archive = archive.map_err(|error| in_archive(export, error))?;
        let repository = Repository::at_first_root(archive)?;
        check_commit(&repository).or_else(|fault| self.note(fault))?;
        if let Some(key) = key {
            check_signature(&repository, did, key).or_else(|fault| self.note(fault))?;
        }
        let found = tree::walk(&repository, &sound, options, &mut |fault| self.note(fault))?;
        records::check(&repository, &found.doubtful, options, &mut |fault| self.note(fault))
    }
}

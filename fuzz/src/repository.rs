//! An accepted repository is accepted again when it is written anew, and no input does harm.

use wireproof::atproto::repo::{Archive, Options as CarOptions, Repository};
use wireproof::verify::repository::{self, Options};

/// Runs the target on one input.
pub(crate) fn run(input: &[u8]) {
    let options = Options::default();
    let verdict = repository::verify_without_signature(input, &options);
    let faults = repository::collect_rejections(input, None, None, &options, 100);
    assert_eq!(faults.first(), verdict.as_ref().err());
    if let Ok(whole) = verdict {
        let again = whole.export(Vec::new()).expect("proved to be whole");
        let judged = repository::verify_without_signature(&again, &options).expect("the same");
        assert_eq!((judged.root(), judged.tree()), (whole.root(), whole.tree()));
        assert_eq!(judged.extra().blocks, 0);
    }
    assert_trusted_blocks_do_no_harm(input);
}

/// Without hash checks there are graphs that no hash permits: cycles, and blocks under the CIDs of others.
fn assert_trusted_blocks_do_no_harm(input: &[u8]) {
    let mut options = CarOptions::default();
    options.trust_hashes = true;
    let Ok(archive) = Archive::read(input, &options) else { return };
    let Ok(repository) = Repository::at_first_root(archive) else { return };
    let read: Vec<_> = repository.records().take(100_000).collect();
    if let Ok(again) = repository.export(Vec::new()) {
        let again = Repository::read(&again, &options).expect("written from what was read");
        assert!(again.records().take(100_000).eq(read));
    }
    let _ = repository.diff(&repository);
}

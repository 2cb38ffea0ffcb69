//! An accepted repository is accepted again when it is written anew, a stream gets the verdict of the whole, and no
//! input does harm.

use atproto::repo::{Archive, Options as CarOptions, Repository};
use verify::repository::stream::{self, StreamFailure, StreamOptions};
use verify::repository::{self, Options, RepositoryRejection, WholeRepository};

/// Runs the target on one input.
pub(crate) fn run(input: &[u8]) {
    let options = Options::default();
    let verdict = repository::verify_without_signature(input, &options);
    let faults = repository::collect_rejections(input, None, None, &options, 100);
    assert_eq!(faults.first(), verdict.as_ref().err());
    assert_stream_agrees(input, verdict.as_deref());
    if let Ok(whole) = verdict {
        let again = whole.export(Vec::new()).expect("proved to be whole");
        let judged = repository::verify_without_signature(&again, &options).expect("the same");
        assert_eq!((judged.root(), judged.tree()), (whole.root(), whole.tree()));
        assert_eq!(judged.extra().blocks, 0);
    }
    assert_trusted_blocks_do_no_harm(input);
}

fn assert_stream_agrees(input: &[u8], whole: Result<&WholeRepository<'_>, &RepositoryRejection>) {
    let streamed = stream::open(input, &StreamOptions::default());
    match (streamed.and_then(|opened| opened.without_signature().verify()), whole) {
        (Ok(streamed), Ok(whole)) => {
            assert_eq!((streamed.root(), streamed.tree()), (whole.root(), whole.tree()));
            assert_eq!(streamed.invalid_records(), whole.invalid_records());
            assert_eq!(streamed.extra(), whole.extra());
        }
        (Err(StreamFailure::Rejected(streamed)), Err(whole)) => assert_eq!(*streamed, *whole),
        (streamed, whole) => panic!("{:?} {:?}", streamed.map(|_| ()), whole.map(|_| ())),
    }
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

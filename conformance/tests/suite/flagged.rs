//! Records that the data model does not allow are told of in what is proved all the same, and no real
//! record is told of that should not be.

use simnet::hostile::{Case, CaseSet, InputKind, Spec};
use simnet::{firehose, repository_corpus};
use wireproof::atproto::corpus;
use wireproof::atproto::event::{Decoder, Event, Options, Values};
use wireproof::atproto::repo::{self, Repository};
use wireproof::verify::Flagged;
use wireproof_conformance::fixtures;

use crate::frames::{LIVE, split_live};

/// Of all records that these frames bring; the same whether the decoder builds values or not.
fn of_frames(frames: &[&[u8]]) -> (u64, Flagged) {
    let [built, validated] = [Values::Build, Values::ValidateOnly].map(|values| {
        let mut options = Options::default();
        options.values = values;
        let mut decoder = Decoder::new(options);
        let (mut ops, mut all) = (0, Flagged::default());
        for frame in frames {
            let Ok(Event::Commit(ref commit)) = decoder.decode(frame) else { continue };
            let Flagged { records, first } = Flagged::of_commit(commit);
            ops += commit.ops.len() as u64;
            all.records += records;
            all.first = all.first.or(first);
        }
        (ops, all)
    });
    assert_eq!(built, validated);
    built
}

fn of_export(export: &[u8]) -> Flagged {
    Flagged::of_repository(&Repository::read(export, &repo::Options::default()).unwrap())
}

#[test]
fn a_frame_with_a_strange_record_is_valid_and_the_record_is_flagged() {
    let set = CaseSet::generate(&Spec::default());
    let flagged = |case: &Case| of_frames(&corpus::read(&case.bytes).unwrap()).1;
    for (name, code) in [
        ("record-with-a-float", "data/float"),
        ("record-with-an-integer-of-64-bits", "data/integer"),
        ("record-with-a-link-of-version-0", "data/link"),
    ] {
        let case = set.cases().iter().find(|case| case.name.ends_with(name)).unwrap();
        let found = flagged(case);
        let first = found.first.unwrap();
        assert_eq!((found.records, first.error.code(), &*first.error.item_path), (1, code, "/n"));
    }
    let usual = set.cases().iter().find(|case| case.name.ends_with("blocks-shuffled")).unwrap();
    assert_eq!(flagged(usual), Flagged::default());
    assert_eq!(usual.kind, InputKind::Frames);
}

#[test]
fn no_record_of_generated_accounts_is_flagged() {
    let stream = firehose::Corpus::generate(&firehose::Spec::quick(), &mut |_, _| {});
    let (ops, flagged) = of_frames(&corpus::read(&stream.to_file()).unwrap());
    assert_eq!(flagged, Flagged::default());
    assert!(ops > 100, "{ops}");
    let spec = repository_corpus::Spec::quick();
    let export = repository_corpus::Corpus::generate(&spec).to_file();
    assert_eq!(of_export(&export), Flagged::default());
}

#[test]
fn no_record_of_a_reference_server_is_flagged() {
    let data = fixtures!(Captures);
    let file = data.bytes("pds/frames.bin");
    assert_eq!(of_frames(&corpus::read(&file).unwrap()).1, Flagged::default());
    for path in data.files("pds", ".car") {
        assert_eq!(of_export(&data.bytes(&path)), Flagged::default(), "{path}");
    }
}

#[test]
fn no_record_of_the_live_network_is_flagged() {
    let data = fixtures!(Captures);
    assert_eq!(of_frames(&split_live(&data.bytes(LIVE))), (61, Flagged::default()));
    let mut repositories = 0;
    for path in data.files("atproto/cars", ".car") {
        let export = data.bytes(&path);
        let Ok(repository) = Repository::read(&export, &repo::Options::default()) else { continue };
        assert_eq!(Flagged::of_repository(&repository), Flagged::default(), "{path}");
        repositories += 1;
    }
    assert_eq!(repositories, 10);
}

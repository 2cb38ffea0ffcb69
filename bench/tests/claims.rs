//! The proof of claimed checks with runners that claim too much, too little and nothing: shell scripts in `tests/runners`.

#![cfg(unix)]

use std::path::Path;

use wireproof_bench::{Claims, Plan, prove_claims};

fn claims_of(peer: &str) -> Claims {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        peers: Some(vec![peer.to_owned()]),
        runners: Some(Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/runners")),
        work_dir: dir.path().join("work"),
        ..Plan::default()
    };
    prove_claims(&plan, &mut |_| {}).unwrap()
}

#[test]
fn a_check_that_is_claimed_and_not_made_is_a_fault_with_the_accepted_inputs() {
    let claims = claims_of("boaster");
    assert!(claims.has_faults());
    let [variant] = &claims.variants[..] else { panic!("{claims:?}") };
    let [fault] = &variant.faults[..] else { panic!("{claims:?}") };
    assert!(fault.starts_with("utf8 is claimed: frame (decode-"), "{fault}");
    assert!(fault.ends_with("is accepted"), "{fault}");
    assert_eq!((variant.peer.as_str(), variant.variant.as_str()), ("boaster", "verified"));
    assert_eq!(variant.proved, 0);
}

#[test]
fn a_runner_that_claims_nothing_and_accepts_everything_has_no_fault() {
    let claims = claims_of("modest");
    assert!(!claims.has_faults(), "{claims:?}");
    assert!(claims.unavailable.is_empty(), "{claims:?}");
}

#[test]
fn a_strict_decoder_of_commits_that_claims_it_for_another_variant_has_two_faults() {
    let claims = claims_of("confused");
    let faults = claims.variants.iter().map(|it| (it.variant.as_str(), &it.faults[..]));
    let faults: Vec<_> =
        faults.flat_map(|(name, all)| all.iter().map(move |it| (name, &it[..]))).collect();
    assert_eq!(
        faults,
        [
            ("crypto", "strict-cbor is claimed and no commit is decoded"),
            ("full", "strict-cbor is made and not claimed"),
        ]
    );
}

//! Malformed commit objects and signatures.

use codec::Cid;
use codec::cid::Codec;

use super::case::{Case, CaseBuilder, Layer, Rule};
use super::fixture::{Fixture, RepositoryBuilder};
use super::parts::archive::{Archive, Item};
use super::parts::commit::{change_signature, der, sign, unsigned};
use crate::account::Account;
use crate::keys::{Curve, SigningKey, with_high_s};
use crate::time::START_MICROS;

pub(super) fn cases(fixture: &Fixture) -> Vec<Case> {
    let mut cases = objects(fixture);
    cases.extend(encodings(fixture));
    cases.extend(accounts(fixture));
    cases.extend(malleable(fixture));
    cases.extend(signatures(fixture, fixture.account(), "k256"));
    cases.extend(signatures(fixture, fixture.p256(), "p256"));
    cases.extend(misplaced(fixture));
    cases
}

/// An archive of one record under a commit that `change` alters before it is signed.
fn before_signing(fixture: &Fixture, change: impl FnOnce(&mut Item)) -> Archive {
    commit_by(fixture, fixture.account(), fixture.account().key(), change, |_| ())
}

/// The same with a `change` after signing.
fn after_signing(fixture: &Fixture, change: impl FnOnce(&mut Item)) -> Archive {
    commit_by(fixture, fixture.account(), fixture.account().key(), |_| (), change)
}

/// An archive of one record under a commit by `key`, altered before and after signing.
fn commit_by(
    fixture: &Fixture,
    account: &Account,
    key: &SigningKey,
    before: impl FnOnce(&mut Item),
    after: impl FnOnce(&mut Item),
) -> Archive {
    let mut builder = RepositoryBuilder::new(fixture);
    let [leaf] = fixture.leaves([0]);
    let data = builder.node(None, &[(&leaf, None)]);
    let rev = account.tid(START_MICROS).to_string();
    let mut object = unsigned(account.did(), &rev, &data);
    before(&mut object);
    let mut signed = sign(object, key);
    after(&mut signed);
    builder.committed(signed)
}

/// Signed objects with missing or invalid fields.
fn objects(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, code, sentence, change: &dyn Fn(&mut Item)| {
        let rule = Rule { section: COMMIT, sentence };
        CaseBuilder::repo(fixture.account(), name, &before_signing(fixture, change))
            .rejected(code, rule)
    };
    let missing = |name: &str, field: &str, sentence| {
        case(name, "commit/missing", sentence, &|object| object.remove(field))
    };
    let version = |name: &str, version: i64| {
        case(name, "commit/version", VERSION_IS_3, &|object| {
            object.set("version", Item::Int(version))
        })
    };
    let field = |name: &str, sentence, field: &str, item: Item| {
        case(name, "commit/field", sentence, &|object| object.set(field, item.clone()))
    };
    let raw = Cid::of(Codec::Raw, b"no tree");
    vec![
        version("version-2", 2),
        version("version-4", 4),
        version("version-0", 0),
        version("version-minus-3", -3),
        missing("version-absent", "version", VERSION_IS_3),
        missing("prev-absent", "prev", PREV_IS_THERE),
        missing("data-absent", "data", DATA_IS_A_TREE),
        missing("did-absent", "did", ALL_FIELDS),
        missing("rev-absent", "rev", ALL_FIELDS),
        field("version-text", VERSION_IS_3, "version", Item::text("3")),
        field("prev-false", PREV_IS_THERE, "prev", Item::Bool(false)),
        field("data-null", DATA_IS_A_TREE, "data", Item::Null),
        field("data-of-raw-codec", DATA_IS_A_TREE, "data", Item::link(&raw)),
        field("data-text", DATA_IS_A_TREE, "data", Item::text(&raw.to_string())),
        field("did-bytes", ALL_FIELDS, "did", Item::Bytes(b"did:plc:a".to_vec())),
        field("rev-integer", ALL_FIELDS, "rev", Item::Int(3)),
        field("did-an-array", ALL_FIELDS, "did", Item::Array(vec![Item::Null])),
    ]
}

/// Objects with non-canonical encodings, covered by the signature.
fn encodings(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, archive: Archive| {
        let rule = Rule { section: COMMIT, sentence: CANONICAL };
        CaseBuilder::repo(fixture.account(), name, &archive).rejected("commit/cbor", rule)
    };
    let bytes = |change: &dyn Fn(&mut Vec<u8>)| {
        after_signing(fixture, |object| {
            let mut bytes = object.encode();
            change(&mut bytes);
            *object = Item::Raw(bytes);
        })
    };
    vec![
        case("unsorted", before_signing(fixture, |object| object.entries().reverse())),
        case(
            "version-wide",
            before_signing(fixture, |object| object.set("version", Item::wide(3))),
        ),
        case(
            "version-a-float",
            before_signing(fixture, |object| {
                object.set("version", Item::Raw(b"\xf9\x42\x00".to_vec()));
            }),
        ),
        case(
            "did-twice",
            before_signing(fixture, |object| {
                let did = object.entries()[0].clone();
                object.entries().insert(0, did);
            }),
        ),
        case(
            "data-of-sha-256-of-20-bytes",
            before_signing(fixture, |object| object.set("data", Item::short_sha_256())),
        ),
        case("indefinite", after_signing(fixture, |object| *object = object.indefinite())),
        case("trailing-byte", bytes(&|bytes| bytes.push(0))),
        case("cut", bytes(&|bytes| bytes.truncate(bytes.len() - 1))),
        case("no-bytes", bytes(&|bytes| bytes.clear())),
        case("wide-head", bytes(&|bytes| drop(bytes.splice(..1, [0xb8, 6])))),
    ]
}

/// Signed commits of another account or with an invalid revision.
fn accounts(fixture: &Fixture) -> Vec<Case> {
    let case = |name: &str, code, sentence, field: &str, text: &str| {
        let rule = Rule { section: COMMIT, sentence };
        let archive = before_signing(fixture, |object| object.set(field, Item::text(text)));
        CaseBuilder::repo(fixture.account(), name, &archive).rejected(code, rule)
    };
    let did = |name: &str, text: &str| case(name, "commit/did", OWN_DID, "did", text);
    let rev = |name: &str, text: &str| case(name, "commit/rev", REV_IS_A_TID, "rev", text);
    let own = fixture.account().did();
    let tid = fixture.account().tid(START_MICROS).to_string();
    vec![
        did("did-of-another", fixture.p256().did()),
        did("did-upper-case", &own.to_uppercase()),
        did("did-upper-case-identifier", &own.replace("did:plc:", "DID:PLC:").to_uppercase()),
        did("did-mixed-case", &format!("did:plc:{}", own["did:plc:".len()..].to_uppercase())),
        did("did-with-a-space", &format!("{own} ")),
        did("did-empty", ""),
        rev("rev-empty", ""),
        rev("rev-upper-case", &tid.to_uppercase()),
        rev("rev-of-12", &tid[..12]),
        rev("rev-of-14", &format!("{tid}2")),
        rev("rev-beyond-63-bits", &format!("k{}", &tid[1..])),
        rev("rev-of-version-2", "bafyreie5737gdxlw5i64vzichcalba3z2v5n6icifvx5xytvske7mr3hpm"),
    ]
}

/// Changes of fields that a verifier which re-encodes known fields would miss.
fn malleable(fixture: &Fixture) -> Vec<Case> {
    let build =
        |name: &'static str, archive: Archive| CaseBuilder::repo(fixture.account(), name, &archive);
    let note = |object: &mut Item| object.set("note", Item::text("from a later version"));
    let earlier = |object: &mut Item| {
        object.set("prev", Item::link(&Cid::of(Codec::DagCbor, b"the commit before")));
    };
    let rule = Rule { section: COMMIT, sentence: SIGNED_AS_IT_STANDS };
    let prev = Rule { section: COMMIT, sentence: PREV_IS_THERE };
    let changed = |name: &'static str, change: &dyn Fn(&mut Item)| {
        build(name, after_signing(fixture, change)).rejected("signature/wrong", rule)
    };
    vec![
        build("unknown-field-signed", before_signing(fixture, note)).accepted(Layer::Commit, rule),
        build("prev-a-link", before_signing(fixture, earlier)).accepted(Layer::Commit, prev),
        // A verifier that re-encodes the fields before checking restores the null.
        build("prev-taken-away", after_signing(fixture, |object| object.remove("prev")))
            .rejected("commit/missing", prev),
        changed("field-added", &note),
        changed("prev-added", &earlier),
        changed("rev-changed", &|object| {
            let rev = fixture.account().tid(START_MICROS + 1).to_string();
            object.set("rev", Item::text(&rev));
        }),
    ]
}

/// Invalid signatures on this curve.
fn signatures(fixture: &Fixture, account: &Account, curve_name: &str) -> Vec<Case> {
    let curve = account.key().curve();
    let case = |name: &str, code, sentence, change: &dyn Fn([u8; 64]) -> Vec<u8>| {
        let change = |object: &mut Item| change_signature(object, change);
        let archive = commit_by(fixture, account, account.key(), |_| (), change);
        let name = format!("{name}-{curve_name}");
        let rule = Rule { section: CRYPTOGRAPHY, sentence };
        CaseBuilder::repo(account, &name, &archive).rejected(code, rule)
    };
    let length = |name: &str, change: &dyn Fn([u8; 64]) -> Vec<u8>| {
        case(name, "commit/signature-length", SIXTY_FOUR, change)
    };
    let range = |name: &str, at: usize, number: [u8; 32]| {
        case(name, "signature/range", IN_RANGE, &|mut signature| {
            signature[at..at + 32].copy_from_slice(&number);
            signature.to_vec()
        })
    };
    let order = curve.order();
    vec![
        length("sig-of-63-bytes", &|signature| signature[..63].to_vec()),
        length("sig-of-65-bytes", &|signature| [&signature[..], &[0]].concat()),
        length("sig-with-recovery-id", &|signature| [&[27], &signature[..]].concat()),
        length("sig-of-no-bytes", &|_| Vec::new()),
        length("sig-as-der", &|signature| der(&signature)),
        case("high-s", "signature/high-s", LOW_S, &|signature| {
            with_high_s(curve, &signature).to_vec()
        }),
        range("r-0", 0, [0; 32]),
        range("s-0", 32, [0; 32]),
        range("r-n", 0, order),
        range("s-n", 32, order),
        range("s-all-ones", 32, [0xff; 32]),
        case("bit-flipped", "signature/wrong", SIGNED, &|mut signature| {
            signature[40] ^= 1;
            signature.to_vec()
        }),
        case("r-and-s-exchanged", "signature/wrong", SIGNED, &|mut signature| {
            signature.rotate_left(32);
            low_s(curve, signature).to_vec()
        }),
    ]
}

/// The signature with the lower of s and n − s.
fn low_s(curve: Curve, signature: [u8; 64]) -> [u8; 64] {
    let other = with_high_s(curve, &signature);
    if signature[32..] < other[32..] { signature } else { other }
}

/// Valid signatures by another key or over other bytes.
fn misplaced(fixture: &Fixture) -> Vec<Case> {
    let account = fixture.account();
    let case = |name: &str, archive: Archive| {
        let rule = Rule { section: CRYPTOGRAPHY, sentence: SIGNED };
        CaseBuilder::repo(account, name, &archive).rejected("signature/wrong", rule)
    };
    let missing = Rule { section: COMMIT, sentence: ALL_FIELDS };
    let other_curve = fixture.p256().key();
    let of_another_commit = |object: &mut Item| {
        let data = Cid::of(Codec::DagCbor, b"another tree");
        let mut other = sign(fixture.unsigned_commit(&data), account.key());
        object.set("sig", other.get("sig").clone());
    };
    let over_itself = |object: &mut Item| {
        // The bytes that an implementation signs which does not remove the empty field.
        object.set("sig", Item::Bytes(Vec::new()));
        let signature = account.key().sign(&object.encode());
        object.set("sig", Item::Bytes(signature.to_vec()));
    };
    let unsigned = after_signing(fixture, |object| object.remove("sig"));
    let as_text = after_signing(fixture, |object| object.set("sig", Item::text("signed: me")));
    vec![
        case("key-of-a-stranger", commit_by(fixture, account, fixture.other_key(), |_| (), |_| ())),
        case("key-of-the-other-curve", commit_by(fixture, account, other_curve, |_| (), |_| ())),
        case("of-another-commit", after_signing(fixture, of_another_commit)),
        case("over-an-empty-sig", after_signing(fixture, over_itself)),
        CaseBuilder::repo(account, "sig-absent", &unsigned).rejected("commit/missing", missing),
        CaseBuilder::repo(account, "sig-text", &as_text).rejected("commit/field", missing),
    ]
}

const COMMIT: &str = "repository: commit objects";
const CRYPTOGRAPHY: &str = "cryptography: ECDSA signature malleability";
const VERSION_IS_3: &str = "the version of the repository format is the integer 3";
const PREV_IS_THERE: &str = "prev is present; it is null, or links to the commit before";
const DATA_IS_A_TREE: &str =
    "data links to the root of the tree, a block of DAG-CBOR under SHA-256";
const ALL_FIELDS: &str =
    "a commit has did and rev, text, and sig, bytes, beside data, prev and version";
const CANONICAL: &str = "a commit is one item of canonical DAG-CBOR";
const OWN_DID: &str = "did is the account's DID in its normal form";
const REV_IS_A_TID: &str = "rev is a TID";
const SIGNED_AS_IT_STANDS: &str =
    "the signature is over the object as it stands without sig, unknown fields among it";
const SIXTY_FOUR: &str = "a signature is r and s, 32 bytes each, and nothing else";
const LOW_S: &str = "s is in the lower half of the order, on both curves";
const IN_RANGE: &str = "r and s are at least 1 and less than the order of the curve";
const SIGNED: &str = "the signature is by the account's key, over this commit";

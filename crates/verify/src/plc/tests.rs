use atproto::plc::{
    AccountData, LegacyCreate, OperationFault, StatedOperation, UnsignedOperation, Update,
};
use codec::Cid;
use crypto::{Curve, SecretKey, SignatureFault};

use super::*;
use crate::commit::tests::high_s_twin;

/// The key of this number: on K-256 if it is even, on P-256 if it is odd.
fn key(number: u8) -> SecretKey {
    let curve = if number.is_multiple_of(2) { Curve::K256 } else { Curve::P256 };
    SecretKey::from_bytes(curve, &[number + 1; 32]).unwrap()
}

/// An operation with these rotation keys, the highest priority first.
fn update(rotation: &[u8], prev: Option<Cid>) -> UnsignedOperation {
    let rotation_keys = rotation.iter().map(|number| key(*number).public_key().to_did_key());
    let data = AccountData { rotation_keys: rotation_keys.collect(), ..AccountData::default() };
    UnsignedOperation::Update(Update { data, prev })
}

fn signed(unsigned: UnsignedOperation, by: u8) -> Operation {
    let sig = key(by).sign(&unsigned.to_bytes());
    unsigned.with_signature(sig)
}

/// Builds an audit log.
#[derive(Clone)]
struct AuditLog {
    did: DidBuf,
    entries: Vec<AuditEntry>,
}

impl AuditLog {
    /// A log of one operation with the rotation keys 0, 1 and 2, which 0 signed at the time 0.
    fn new() -> Self {
        let genesis = signed(update(&[0, 1, 2], None), 0);
        Self { did: genesis.did().unwrap(), entries: Vec::new() }.and(genesis, 0)
    }

    /// Appends this operation, `millis` milliseconds after the first.
    fn and(mut self, operation: Operation, millis: i64) -> Self {
        let micros = 1_700_000_000_000_000 + millis * 1000;
        self.entries.push(AuditEntry {
            did: self.did.clone(),
            cid: operation.cid(),
            operation,
            nullified: false,
            created_at: atproto::syntax::DatetimeBuf::from_unix_micros(micros).unwrap(),
        });
        self
    }

    /// Appends an update of the operation at `prev`, signed by `by`.
    fn update(self, prev: usize, by: u8, millis: i64) -> Self {
        let unsigned = update(&[0, 1, 2], Some(self.cid(prev)));
        self.and(signed(unsigned, by), millis)
    }

    fn tombstone(self, prev: usize, by: u8, millis: i64) -> Self {
        let unsigned = UnsignedOperation::Tombstone { prev: self.cid(prev) };
        self.and(signed(unsigned, by), millis)
    }

    /// Marks these operations as nullified.
    fn nullified(mut self, indexes: &[usize]) -> Self {
        indexes.iter().for_each(|index| self.entries[*index].nullified = true);
        self
    }

    fn cid(&self, index: usize) -> Cid {
        self.entries[index].cid
    }

    fn verify(&self) -> Result<Verified<History>, PlcRejection> {
        verify_audit_log(self.entries.clone(), &Options::default())
    }

    fn fault(&self) -> (usize, PlcFault) {
        let rejection = self.verify().unwrap_err();
        (rejection.index, rejection.fault)
    }
}

const HOUR: i64 = 3_600_000;

#[test]
fn a_log_of_updates_is_accepted_in_both_forms() {
    let log = AuditLog::new().update(0, 2, 1).update(1, 1, 2).tombstone(2, 0, 3);
    let history = log.verify().unwrap();
    assert_eq!(history.did(), log.did.as_did());
    assert!(history.is_tombstoned() && history.signing_key().is_none());
    let signers: Vec<usize> = history.operations().iter().map(|accepted| accepted.signer).collect();
    assert_eq!(signers, [0, 2, 1, 0]);
    let plain: Vec<Operation> = log.entries.iter().map(|entry| entry.operation.clone()).collect();
    let plain = verify_plain_log(plain, &Options::default()).unwrap();
    assert_eq!(plain.data(), history.data());
    assert_eq!(plain.operations()[1].created_at_micros, None);
}

/// The verdict on the operations one after the other, every one after a history that is resumed from the accepted
/// ones.
fn verdict_one_by_one(log: &AuditLog) -> Result<Vec<AcceptedOperation>, PlcRejection> {
    let (limits, mut accepted) = (Limits::default(), Vec::new());
    for AuditEntry { did, operation, cid, created_at, .. } in log.entries.clone() {
        let stated = StatedOperation { did, operation, cid, created_at };
        let mut history =
            GrowingHistory::resume_unchecked(&limits, log.did.clone(), accepted.clone());
        let before: Vec<bool> = accepted.iter().map(|accepted| accepted.nullified).collect();
        let nullified = history.append(stated)?;
        accepted = history.operations().to_vec();
        let changed = (0..before.len()).filter(|at| accepted[*at].nullified != before[*at]);
        assert_eq!(changed.collect::<Vec<_>>(), nullified);
    }
    Ok(accepted)
}

#[test]
fn operations_one_by_one_have_the_verdict_of_the_whole_log() {
    let base = || AuditLog::new().update(0, 2, 1).update(1, 1, 2);
    let valid = [
        base(),
        base().tombstone(2, 0, 3),
        base().update(0, 1, 4).nullified(&[1, 2]),
        base().update(0, 1, 1 + 72 * HOUR).nullified(&[1, 2]).update(3, 2, 2 + 72 * HOUR),
    ];
    for log in valid {
        assert_eq!(verdict_one_by_one(&log).unwrap(), log.verify().unwrap().operations());
    }
    let invalid = [
        base().update(0, 2, 4),
        base().update(0, 1, 2 + 72 * HOUR),
        base().update(2, 1, 2),
        base().update(0, 1, 4).nullified(&[1, 2]).update(2, 0, 5),
        base().tombstone(2, 0, 3).update(3, 0, 4),
        base().and(signed(update(&[0], None), 0), 4),
        base().and(signed(update(&[0], Some(base().cid(2))), 3), 4),
    ];
    for log in invalid {
        assert_eq!(verdict_one_by_one(&log).unwrap_err(), log.verify().unwrap_err());
    }
}

#[test]
fn a_fault_of_the_signature_says_more_than_a_mismatch_with_another_key() {
    // An r beyond the order of P-256, of the key 1, and within the order of K-256, of the key 0.
    let mut sig = [1; 64];
    sig[..4].fill(0xff);
    sig[4..8].fill(0);
    sig[8..32].fill(0xff);
    let operation = update(&[1, 0], None).with_signature(sig);
    let rejection = verify_plain_log(vec![operation], &Options::default()).unwrap_err();
    assert_eq!(rejection.fault, PlcFault::Signature(SignatureFault::RRange));
}

#[test]
fn text_that_is_no_json_is_rejected_as_such() {
    assert_eq!(verify(b"[{", &Options::default()).unwrap_err().code(), "plc/json");
}

#[test]
fn both_forms_are_read_from_json() {
    let log = AuditLog::new().update(0, 2, 1);
    let plain: Vec<String> = log.entries.iter().map(|entry| entry.operation.to_json()).collect();
    let json = format!("[{}]", plain.join(","));
    assert_eq!(verify(json.as_bytes(), &Options::default()).unwrap().did(), log.did.as_did());
    let audit = log.entries.iter().map(|entry| {
        format!(
            r#"{{"did":"{}","operation":{},"cid":"{}","nullified":{},"createdAt":"{}"}}"#,
            entry.did,
            entry.operation.to_json(),
            entry.cid,
            entry.nullified,
            entry.created_at,
        )
    });
    let json = format!("[{}]", audit.collect::<Vec<_>>().join(","));
    let history = verify(json.as_bytes(), &Options::default()).unwrap();
    assert_eq!(*history, *log.verify().unwrap());
    let wrong = json.replacen("plc_operation", "plc_other", 1);
    let rejection = verify(wrong.as_bytes(), &Options::default()).unwrap_err();
    assert_eq!(
        (rejection.fault, rejection.code()),
        (PlcFault::Form(OperationFault::Type), "plc/type")
    );
}

#[test]
fn a_log_without_operations_is_rejected() {
    let rejection = verify(b"[]", &Options::default()).unwrap_err();
    assert_eq!((rejection.fault, rejection.code()), (PlcFault::Empty, "plc/empty"));
    assert_eq!(verify_audit_log(Vec::new(), &Options::default()), Err(rejection));
}

#[test]
fn an_empty_log_and_one_that_is_no_list_are_named_without_an_entry() {
    let message = |json: &[u8]| verify(json, &Options::default()).unwrap_err().to_string();
    assert_eq!(message(b"[]"), "the log has no operation");
    for json in [&b"null"[..], b"{}", b"", b"\xef\xbb\xbf[]"] {
        assert_eq!(message(json), "a log is a JSON list of operations or of audit entries");
    }
}

#[test]
fn a_field_that_no_operation_has_is_named_as_the_broken_rule() {
    let operation = signed(update(&[0], None), 0).to_json();
    let log = format!("[{}]", operation.replacen('{', "{\"extra\": 1,", 1));
    let rejection = verify(log.as_bytes(), &Options::default()).unwrap_err();
    assert_eq!(rejection.code(), "plc/json");
    let text = rejection.to_string();
    assert!(text.contains("a field that no operation has, before line 1"), "{text}");
}

#[test]
fn the_first_operation_determines_the_did_and_is_signed_by_its_own_key() {
    let mut log = AuditLog::new();
    assert!(log.verify().is_ok());
    let other = Options { did: Some("did:plc:a".parse().unwrap()), ..Options::default() };
    let rejection = verify_audit_log(log.entries.clone(), &other).unwrap_err();
    assert_eq!((rejection.index, rejection.fault), (0, PlcFault::Did));
    log.entries[0].did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz".parse().unwrap();
    assert_eq!(log.fault(), (0, PlcFault::Did));

    let other = signed(update(&[0, 1], None), 2);
    let rejection = verify_plain_log(vec![other], &Options::default()).unwrap_err();
    assert_eq!(rejection.fault, PlcFault::Signature(SignatureFault::Mismatch));
    let follows = AuditLog::new().update(0, 0, 1).entries.remove(1).operation;
    let rejection = verify_plain_log(vec![follows], &Options::default()).unwrap_err();
    assert_eq!((rejection.fault, rejection.code()), (PlcFault::Genesis, "plc/genesis"));
}

#[test]
fn an_entry_of_another_account_is_rejected() {
    let mut log = AuditLog::new().update(0, 0, 1);
    log.entries[1].did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz".parse().unwrap();
    let (index, fault) = log.fault();
    assert_eq!((index, fault), (1, PlcFault::EntryDid));
    let message = PlcRejection { index, fault }.to_string();
    assert_eq!(message, "entry 1 of the log: the entry is of another DID than the first operation");
}

#[test]
fn a_cid_must_be_that_of_the_operation() {
    let mut log = AuditLog::new().update(0, 0, 1);
    log.entries[1].cid = log.cid(0);
    assert_eq!(log.fault(), (1, PlcFault::Cid));
}

#[test]
fn times_must_increase() {
    assert_eq!(AuditLog::new().update(0, 0, 0).fault(), (1, PlcFault::CreatedAt));
    assert_eq!(AuditLog::new().update(0, 0, -1).fault(), (1, PlcFault::CreatedAt));
    assert_eq!(AuditLog::new().update(0, 0, 5).update(1, 0, 4).fault(), (2, PlcFault::CreatedAt));
    // The time of an operation that is nullified counts as well.
    let log = AuditLog::new().update(0, 1, 5).update(0, 0, 4).nullified(&[1]);
    assert_eq!(log.fault(), (2, PlcFault::CreatedAt));
}

#[test]
fn only_rotation_keys_of_the_operation_before_may_sign() {
    let wrong = PlcFault::Signature(SignatureFault::Mismatch);
    assert_eq!(AuditLog::new().update(0, 3, 1).fault(), (1, wrong));
    let log = AuditLog::new();
    let handed_over = signed(update(&[3], Some(log.cid(0))), 0);
    let log = log.and(handed_over, 1);
    assert!(log.clone().update(1, 3, 2).verify().is_ok());
    assert_eq!(log.update(1, 0, 2).fault(), (2, wrong));
}

#[test]
fn an_account_without_rotation_keys_cannot_change() {
    let log = AuditLog::new();
    let last = signed(update(&[], Some(log.cid(0))), 0);
    let log = log.and(last, 1);
    assert!(log.verify().is_ok());
    let rejection = log.update(1, 0, 2).verify().unwrap_err();
    assert_eq!((rejection.fault, rejection.code()), (PlcFault::NoKey, "signature/no-key"));
    let keyless = update(&[], None).with_signature([1; 64]);
    let rejection = verify_plain_log(vec![keyless], &Options::default()).unwrap_err();
    assert_eq!(rejection.fault, PlcFault::NoKey);
}

#[test]
fn a_rotation_key_must_be_a_key() {
    let mut data = AccountData::default();
    data.rotation_keys.push(key(0).public_key().to_did_key());
    data.rotation_keys.push("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK".to_owned());
    let genesis = signed(UnsignedOperation::Update(Update { data, prev: None }), 0);
    let rejection = verify_plain_log(vec![genesis], &Options::default()).unwrap_err();
    assert_eq!(rejection.code(), "plc/rotation-key");
    assert_eq!(
        rejection.to_string(),
        "entry 0 of the log: rotation key 1: an Ed25519 key, which the AT Protocol does not use: \
         keys are of K-256 or P-256"
    );
}

#[test]
fn a_high_s_is_rejected_on_both_curves() {
    for (by, curve) in [(0, Curve::K256), (1, Curve::P256)] {
        let low = signed(update(&[by], None), by);
        assert!(verify_plain_log(vec![low.clone()], &Options::default()).is_ok());
        let high = update(&[by], None).with_signature(high_s_twin(curve, *low.sig()));
        let rejection = verify_plain_log(vec![high], &Options::default()).unwrap_err();
        assert_eq!(rejection.fault, PlcFault::Signature(SignatureFault::HighS));
        assert_eq!(rejection.code(), "signature/high-s");
    }
}

#[test]
fn a_signature_out_of_range_is_rejected() {
    let zero = update(&[0], None).with_signature([0; 64]);
    let rejection = verify_plain_log(vec![zero], &Options::default()).unwrap_err();
    assert_eq!(rejection.code(), "signature/range");
}

#[test]
fn a_signature_in_another_spelling_is_rejected() {
    let json = AuditLog::new().entries[0].operation.to_json();
    let verify_json = |json: &str| verify(format!("[{json}]").as_bytes(), &Options::default());
    assert!(verify_json(&json).is_ok());
    let (head, tail) = json.split_once(r#""sig":""#).unwrap();
    let (sig, tail) = tail.split_once('"').unwrap();
    let last = sig.as_bytes()[85];
    // The last symbol holds two bits of the signature and four that must not be set.
    let stray = char::from(if last == b'A' { b'B' } else { last + 1 });
    for spelling in [format!("{sig}=="), format!(r"{sig}\n"), format!("{}{stray}", &sig[..85])] {
        let rejection = verify_json(&format!(r#"{head}"sig":"{spelling}"{tail}"#)).unwrap_err();
        assert_eq!(rejection.code(), "plc/signature-encoding", "{spelling}");
    }
    let rejection = verify_json(&format!(r#"{head}"sig":"{}"{tail}"#, &sig[..84])).unwrap_err();
    assert_eq!(rejection.code(), "plc/signature-length");
}

#[test]
fn a_key_of_higher_priority_nullifies_an_operation_and_all_that_follow() {
    let log = AuditLog::new().update(0, 2, 1).update(1, 2, 2).update(0, 1, 3).nullified(&[1, 2]);
    let history = log.verify().unwrap();
    let nullified: Vec<bool> =
        history.operations().iter().map(|accepted| accepted.nullified).collect();
    assert_eq!(nullified, [false, true, true, false]);
    // And is nullified in turn.
    let log = log.update(3, 1, 4).update(0, 0, 5).nullified(&[3, 4]);
    assert!(log.verify().is_ok());
    assert!(log.update(5, 2, 6).verify().is_ok());
}

#[test]
fn a_stated_nullification_must_be_true() {
    let nullified = AuditLog::new().update(0, 2, 1).update(0, 1, 2);
    assert_eq!(nullified.fault(), (1, PlcFault::Nullified));
    assert_eq!(nullified.clone().nullified(&[2]).fault(), (1, PlcFault::Nullified));
    assert_eq!(nullified.clone().nullified(&[0, 1]).fault(), (0, PlcFault::Nullified));
    assert!(nullified.nullified(&[1]).verify().is_ok());
    assert_eq!(AuditLog::new().nullified(&[0]).fault(), (0, PlcFault::Nullified));
}

#[test]
fn a_key_cannot_nullify_an_operation_of_its_own_or_of_a_higher_priority() {
    for (first, second) in [(1, 1), (0, 0), (0, 1), (1, 2)] {
        let log = AuditLog::new().update(0, first, 1).update(0, second, 2).nullified(&[1]);
        assert_eq!(log.fault(), (2, PlcFault::Priority), "{first} {second}");
    }
    // Also not after it undid another.
    let log = AuditLog::new().update(0, 2, 1).update(0, 1, 2).update(0, 1, 3).nullified(&[1, 2]);
    assert_eq!(log.fault(), (3, PlcFault::Priority));
}

#[test]
fn a_key_that_is_listed_twice_has_the_priority_of_its_first_index() {
    let genesis = signed(update(&[1, 0, 1], None), 1);
    let log = AuditLog { did: genesis.did().unwrap(), entries: Vec::new() }.and(genesis, 0);
    let log = log.update(0, 1, 1);
    assert_eq!(log.verify().unwrap().operations()[1].signer, 0);
    assert_eq!(log.update(0, 0, 2).nullified(&[1]).fault(), (2, PlcFault::Priority));
}

#[test]
fn a_key_that_is_not_listed_cannot_nullify() {
    let log = AuditLog::new().update(0, 2, 1).update(0, 3, 2).nullified(&[1]);
    assert_eq!(log.fault(), (2, PlcFault::Signature(SignatureFault::Mismatch)));
}

#[test]
fn an_operation_can_be_nullified_for_72_hours_and_no_longer() {
    let log = AuditLog::new().update(0, 2, 7);
    let nullified = |millis| log.clone().update(0, 1, 7 + millis).nullified(&[1]);
    assert!(nullified(72 * HOUR).verify().is_ok());
    let rejection = nullified(72 * HOUR + 1).verify().unwrap_err();
    assert_eq!((rejection.index, rejection.fault), (2, PlcFault::Window));
    assert_eq!(rejection.code(), "plc/window");
}

#[test]
fn the_window_begins_with_the_first_nullified_operation() {
    let log = AuditLog::new().update(0, 2, 1).update(1, 2, 50 * HOUR);
    assert_eq!(
        log.clone().update(0, 1, 73 * HOUR).nullified(&[1, 2]).fault(),
        (3, PlcFault::Window)
    );
    assert!(log.update(1, 1, 73 * HOUR).nullified(&[2]).verify().is_ok());
}

#[test]
fn a_nullified_operation_has_no_successor() {
    let log = AuditLog::new().update(0, 2, 1).update(0, 1, 2).update(1, 0, 3).nullified(&[1]);
    assert_eq!(log.fault(), (3, PlcFault::PrevNullified));
    let log = AuditLog::new().update(0, 2, 1).update(1, 2, 2).update(0, 1, 3).update(2, 0, 4);
    assert_eq!(log.nullified(&[1, 2]).fault(), (4, PlcFault::PrevNullified));
}

#[test]
fn a_tombstone_has_no_successor_but_can_be_nullified() {
    let log = AuditLog::new().tombstone(0, 2, 1);
    assert!(log.verify().unwrap().is_tombstoned());
    let rejection = log.clone().update(1, 0, 2).verify().unwrap_err();
    assert_eq!((rejection.fault, rejection.code()), (PlcFault::Tombstoned, "plc/tombstoned"));
    let history = log.update(0, 1, 2).nullified(&[1]).verify().unwrap();
    assert!(!history.is_tombstoned());
}

#[test]
fn an_operation_must_follow_one_of_the_log() {
    let log = AuditLog::new();
    let elsewhere = signed(update(&[0], Some(key_cid())), 0);
    assert_eq!(log.clone().and(elsewhere, 1).fault(), (1, PlcFault::Prev));
    let second_genesis = signed(update(&[0, 1], None), 0);
    assert_eq!(log.and(second_genesis, 1).fault(), (1, PlcFault::Prev));
}

/// The CID of an operation that no log here has.
fn key_cid() -> Cid {
    signed(update(&[5], None), 5).cid()
}

#[test]
fn a_plain_log_has_no_nullified_operations() {
    let log = AuditLog::new().update(0, 2, 1).update(0, 1, 2);
    let plain = log.entries.into_iter().map(|entry| entry.operation).collect();
    let rejection = verify_plain_log(plain, &Options::default()).unwrap_err();
    assert_eq!((rejection.index, rejection.fault), (2, PlcFault::Prev));
}

#[test]
fn the_recovery_key_of_a_legacy_account_has_the_highest_priority() {
    let did_key = |number: u8| key(number).public_key().to_did_key();
    let create = UnsignedOperation::Create(LegacyCreate {
        signing_key: did_key(1),
        recovery_key: did_key(0),
        handle: "alice.test".to_owned(),
        service: "https://a.test".to_owned(),
    });
    let genesis = signed(create, 1);
    let log = AuditLog { did: genesis.did().unwrap(), entries: Vec::new() }.and(genesis, 0);
    let history = log.verify().unwrap();
    assert_eq!(
        (history.operations()[0].signer, history.data().unwrap().host()),
        (1, Some("https://a.test"))
    );
    assert_eq!(history.signing_key(), Some(key(1).public_key()));
    assert!(log.update(0, 1, 1).update(0, 0, 2).nullified(&[1]).verify().is_ok());
}

#[test]
fn a_limit_is_a_rejection_that_names_it() {
    let mut limits = Limits::default();
    limits.rotation_keys = 2;
    let options = Options { limits, did: None };
    let rejection = verify_audit_log(AuditLog::new().entries, &options).unwrap_err();
    assert_eq!(rejection.code(), "plc/limit");
    let text = "entry 0 of the log: the limit `rotation_keys` of 2 is exceeded: 3";
    assert_eq!(rejection.to_string(), text);
    limits.log_bytes = 10;
    let rejection = verify(b"[           ]", &Options { limits, did: None }).unwrap_err();
    assert!(rejection.to_string().ends_with("the limit `log_bytes` of 10 is exceeded: 13"));
}

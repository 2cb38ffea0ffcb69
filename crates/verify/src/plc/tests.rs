use atproto::plc::{AccountData, LegacyCreate, OperationFault, UnsignedOperation, Update};
use codec::Cid;
use crypto::{Curve, SecretKey, SignatureFault};

use super::*;

/// The key of this number: on K-256 if it is even, on P-256 if it is odd.
fn key(number: u8) -> SecretKey {
    let curve = if number.is_multiple_of(2) { Curve::K256 } else { Curve::P256 };
    SecretKey::from_bytes(curve, &[number + 1; 32]).unwrap()
}

/// An operation that names these rotation keys, the mightiest first.
fn update(rotation: &[u8], prev: Option<Cid>) -> UnsignedOperation {
    let rotation_keys = rotation.iter().map(|number| key(*number).public_key().to_did_key());
    let data = AccountData { rotation_keys: rotation_keys.collect(), ..AccountData::default() };
    UnsignedOperation::Update(Update { data, prev })
}

fn signed(unsigned: UnsignedOperation, by: u8) -> Operation {
    let sig = key(by).sign(&unsigned.to_bytes());
    unsigned.with_signature(sig)
}

/// An audit log that grows.
#[derive(Clone)]
struct Made {
    did: DidBuf,
    entries: Vec<AuditEntry>,
}

impl Made {
    /// A log of one operation with the rotation keys 0, 1 and 2, which 0 signed at the time 0.
    fn new() -> Self {
        let genesis = signed(update(&[0, 1, 2], None), 0);
        Self { did: genesis.did().unwrap(), entries: Vec::new() }.and(genesis, 0)
    }

    /// And this operation, so many milliseconds after the first.
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

    /// And an update that `by` signed and that follows the operation at `prev`.
    fn update(self, prev: usize, by: u8, millis: i64) -> Self {
        let unsigned = update(&[0, 1, 2], Some(self.cid(prev)));
        self.and(signed(unsigned, by), millis)
    }

    fn tombstone(self, prev: usize, by: u8, millis: i64) -> Self {
        let unsigned = UnsignedOperation::Tombstone { prev: self.cid(prev) };
        self.and(signed(unsigned, by), millis)
    }

    /// With these operations said to be undone.
    fn undone(mut self, indexes: &[usize]) -> Self {
        indexes.iter().for_each(|index| self.entries[*index].nullified = true);
        self
    }

    fn cid(&self, index: usize) -> Cid {
        self.entries[index].cid
    }

    fn judge(&self) -> Result<Verified<History>, PlcRejection> {
        verify_audit_log(self.entries.clone(), &Options::default())
    }

    fn fault(&self) -> (usize, PlcFault) {
        let rejection = self.judge().unwrap_err();
        (rejection.index, rejection.fault)
    }
}

const HOUR: i64 = 3_600_000;

#[test]
fn a_log_of_updates_is_accepted_in_both_forms() {
    let log = Made::new().update(0, 2, 1).update(1, 1, 2).tombstone(2, 0, 3);
    let history = log.judge().unwrap();
    assert_eq!(history.did(), log.did.as_did());
    assert!(history.is_tombstoned() && history.signing_key().is_none());
    let signers: Vec<usize> = history.operations().iter().map(|judged| judged.signer).collect();
    assert_eq!(signers, [0, 2, 1, 0]);
    let plain: Vec<Operation> = log.entries.iter().map(|entry| entry.operation.clone()).collect();
    let plain = verify_plain_log(plain, &Options::default()).unwrap();
    assert_eq!(plain.data(), history.data());
    assert_eq!(plain.operations()[1].created_at_micros, None);
}

#[test]
fn both_forms_are_read_from_json() {
    let log = Made::new().update(0, 2, 1);
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
    assert_eq!(*history, *log.judge().unwrap());
    let wrong = json.replacen("plc_operation", "plc_other", 1);
    let rejection = verify(wrong.as_bytes(), &Options::default()).unwrap_err();
    assert_eq!(
        (rejection.fault, rejection.code()),
        (PlcFault::Form(OperationFault::Type), "plc/type")
    );
}

#[test]
fn a_log_without_operations_is_refused() {
    let rejection = verify(b"[]", &Options::default()).unwrap_err();
    assert_eq!((rejection.fault, rejection.code()), (PlcFault::Empty, "plc/empty"));
    assert_eq!(verify_audit_log(Vec::new(), &Options::default()), Err(rejection));
}

#[test]
fn the_first_operation_makes_the_did_and_signs_itself() {
    let mut log = Made::new();
    assert!(log.judge().is_ok());
    let other = Options { did: Some("did:plc:a".parse().unwrap()), ..Options::default() };
    let rejection = verify_audit_log(log.entries.clone(), &other).unwrap_err();
    assert_eq!((rejection.index, rejection.fault), (0, PlcFault::Did));
    log.entries[0].did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz".parse().unwrap();
    assert_eq!(log.fault(), (0, PlcFault::Did));

    let stranger = signed(update(&[0, 1], None), 2);
    let refusal = verify_plain_log(vec![stranger], &Options::default()).unwrap_err();
    assert_eq!(refusal.fault, PlcFault::Signature(SignatureFault::Mismatch));
    let follows = Made::new().update(0, 0, 1).entries.remove(1).operation;
    let refusal = verify_plain_log(vec![follows], &Options::default()).unwrap_err();
    assert_eq!((refusal.fault, refusal.code()), (PlcFault::Genesis, "plc/genesis"));
}

#[test]
fn an_entry_of_another_account_is_refused() {
    let mut log = Made::new().update(0, 0, 1);
    log.entries[1].did = "did:plc:ewvi7nxzyoun6zhxrhs64oiz".parse().unwrap();
    assert_eq!(log.fault(), (1, PlcFault::Did));
}

#[test]
fn a_cid_must_be_that_of_the_operation() {
    let mut log = Made::new().update(0, 0, 1);
    log.entries[1].cid = log.cid(0);
    assert_eq!(log.fault(), (1, PlcFault::Cid));
}

#[test]
fn times_only_grow() {
    assert_eq!(Made::new().update(0, 0, 0).fault(), (1, PlcFault::CreatedAt));
    assert_eq!(Made::new().update(0, 0, -1).fault(), (1, PlcFault::CreatedAt));
    assert_eq!(Made::new().update(0, 0, 5).update(1, 0, 4).fault(), (2, PlcFault::CreatedAt));
    // The time of an operation that is undone counts as well.
    let log = Made::new().update(0, 1, 5).update(0, 0, 4).undone(&[1]);
    assert_eq!(log.fault(), (2, PlcFault::CreatedAt));
}

#[test]
fn only_rotation_keys_of_the_operation_before_may_sign() {
    let wrong = PlcFault::Signature(SignatureFault::Mismatch);
    assert_eq!(Made::new().update(0, 3, 1).fault(), (1, wrong));
    let log = Made::new();
    let handed_over = signed(update(&[3], Some(log.cid(0))), 0);
    let log = log.and(handed_over, 1);
    assert!(log.clone().update(1, 3, 2).judge().is_ok());
    assert_eq!(log.update(1, 0, 2).fault(), (2, wrong));
}

#[test]
fn without_rotation_keys_an_account_stays_as_it_is() {
    let log = Made::new();
    let last = signed(update(&[], Some(log.cid(0))), 0);
    let log = log.and(last, 1);
    assert!(log.judge().is_ok());
    let rejection = log.update(1, 0, 2).judge().unwrap_err();
    assert_eq!((rejection.fault, rejection.code()), (PlcFault::NoKey, "signature/no-key"));
    let nobody = update(&[], None).with_signature([1; 64]);
    let refusal = verify_plain_log(vec![nobody], &Options::default()).unwrap_err();
    assert_eq!(refusal.fault, PlcFault::NoKey);
}

#[test]
fn a_rotation_key_must_be_a_key() {
    let mut data = AccountData::default();
    data.rotation_keys.push(key(0).public_key().to_did_key());
    data.rotation_keys.push("did:key:z6MkhaXgBZDvotDkL5257faiztiGiC2QtKLGpbnnEGta2doK".to_owned());
    let genesis = signed(UnsignedOperation::Update(Update { data, prev: None }), 0);
    let refusal = verify_plain_log(vec![genesis], &Options::default()).unwrap_err();
    assert_eq!((refusal.fault, refusal.code()), (PlcFault::RotationKey(1), "plc/rotation-key"));
}

/// The twin of a signature, which is high where it was low.
fn twin(signature: &[u8; 64], order: &[u8; 32]) -> [u8; 64] {
    let mut twin = *signature;
    let mut borrow = 0;
    for at in (0..32).rev() {
        let difference = i32::from(order[at]) - i32::from(signature[32 + at]) - borrow;
        borrow = i32::from(difference < 0);
        twin[32 + at] = difference.rem_euclid(256) as u8;
    }
    twin
}

#[test]
fn a_high_s_is_refused_on_both_curves() {
    let k256 = b"\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xfe\
                 \xba\xae\xdc\xe6\xaf\x48\xa0\x3b\xbf\xd2\x5e\x8c\xd0\x36\x41\x41";
    let p256 = b"\xff\xff\xff\xff\x00\x00\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\
                 \xbc\xe6\xfa\xad\xa7\x17\x9e\x84\xf3\xb9\xca\xc2\xfc\x63\x25\x51";
    for (by, order) in [(0, k256), (1, p256)] {
        let low = signed(update(&[by], None), by);
        assert!(verify_plain_log(vec![low.clone()], &Options::default()).is_ok());
        let high = update(&[by], None).with_signature(twin(low.sig(), order));
        let rejection = verify_plain_log(vec![high], &Options::default()).unwrap_err();
        assert_eq!(rejection.fault, PlcFault::Signature(SignatureFault::HighS));
        assert_eq!(rejection.code(), "signature/high-s");
    }
}

#[test]
fn a_signature_out_of_range_is_refused() {
    let zero = update(&[0], None).with_signature([0; 64]);
    let rejection = verify_plain_log(vec![zero], &Options::default()).unwrap_err();
    assert_eq!(rejection.code(), "signature/range");
}

#[test]
fn a_signature_in_another_spelling_is_refused() {
    let json = Made::new().entries[0].operation.to_json();
    let judge = |json: &str| verify(format!("[{json}]").as_bytes(), &Options::default());
    assert!(judge(&json).is_ok());
    let (head, tail) = json.split_once(r#""sig":""#).unwrap();
    let (sig, tail) = tail.split_once('"').unwrap();
    let last = sig.as_bytes()[85];
    // The last symbol holds two bits of the signature and four that must not be set.
    let stray = char::from(if last == b'A' { b'B' } else { last + 1 });
    for spelling in [format!("{sig}=="), format!(r"{sig}\n"), format!("{}{stray}", &sig[..85])] {
        let rejection = judge(&format!(r#"{head}"sig":"{spelling}"{tail}"#)).unwrap_err();
        assert_eq!(rejection.code(), "plc/signature-encoding", "{spelling}");
    }
    let rejection = judge(&format!(r#"{head}"sig":"{}"{tail}"#, &sig[..84])).unwrap_err();
    assert_eq!(rejection.code(), "plc/signature-length");
}

#[test]
fn a_mightier_key_undoes_an_operation_and_all_behind_it() {
    let log = Made::new().update(0, 2, 1).update(1, 2, 2).update(0, 1, 3).undone(&[1, 2]);
    let history = log.judge().unwrap();
    let undone: Vec<bool> = history.operations().iter().map(|judged| judged.nullified).collect();
    assert_eq!(undone, [false, true, true, false]);
    // And is undone in turn.
    let log = log.update(3, 1, 4).update(0, 0, 5).undone(&[3, 4]);
    assert!(log.judge().is_ok());
    assert!(log.update(5, 2, 6).judge().is_ok());
}

#[test]
fn what_an_entry_says_of_being_undone_must_be_so() {
    let undone = Made::new().update(0, 2, 1).update(0, 1, 2);
    assert_eq!(undone.fault(), (1, PlcFault::Nullified));
    assert_eq!(undone.clone().undone(&[2]).fault(), (1, PlcFault::Nullified));
    assert_eq!(undone.clone().undone(&[0, 1]).fault(), (0, PlcFault::Nullified));
    assert!(undone.undone(&[1]).judge().is_ok());
    assert_eq!(Made::new().undone(&[0]).fault(), (0, PlcFault::Nullified));
}

#[test]
fn a_key_undoes_nothing_that_itself_or_a_mightier_one_signed() {
    for (first, second) in [(1, 1), (0, 0), (0, 1), (1, 2)] {
        let log = Made::new().update(0, first, 1).update(0, second, 2).undone(&[1]);
        assert_eq!(log.fault(), (2, PlcFault::Priority), "{first} {second}");
    }
    // Also not after it undid another.
    let log = Made::new().update(0, 2, 1).update(0, 1, 2).update(0, 1, 3).undone(&[1, 2]);
    assert_eq!(log.fault(), (3, PlcFault::Priority));
}

#[test]
fn a_key_that_is_listed_twice_is_as_mighty_as_its_first_place() {
    let genesis = signed(update(&[1, 0, 1], None), 1);
    let log = Made { did: genesis.did().unwrap(), entries: Vec::new() }.and(genesis, 0);
    let log = log.update(0, 1, 1);
    assert_eq!(log.judge().unwrap().operations()[1].signer, 0);
    assert_eq!(log.update(0, 0, 2).undone(&[1]).fault(), (2, PlcFault::Priority));
}

#[test]
fn a_stranger_undoes_nothing() {
    let log = Made::new().update(0, 2, 1).update(0, 3, 2).undone(&[1]);
    assert_eq!(log.fault(), (2, PlcFault::Signature(SignatureFault::Mismatch)));
}

#[test]
fn an_operation_can_be_undone_for_72_hours_and_no_longer() {
    let log = Made::new().update(0, 2, 7);
    let undone = |millis| log.clone().update(0, 1, 7 + millis).undone(&[1]);
    assert!(undone(72 * HOUR).judge().is_ok());
    let rejection = undone(72 * HOUR + 1).judge().unwrap_err();
    assert_eq!((rejection.index, rejection.fault), (2, PlcFault::Window));
    assert_eq!(rejection.code(), "plc/window");
}

#[test]
fn the_window_begins_with_the_first_operation_that_is_undone() {
    let log = Made::new().update(0, 2, 1).update(1, 2, 50 * HOUR);
    assert_eq!(log.clone().update(0, 1, 73 * HOUR).undone(&[1, 2]).fault(), (3, PlcFault::Window));
    assert!(log.update(1, 1, 73 * HOUR).undone(&[2]).judge().is_ok());
}

#[test]
fn nothing_follows_what_was_undone() {
    let log = Made::new().update(0, 2, 1).update(0, 1, 2).update(1, 0, 3).undone(&[1]);
    assert_eq!(log.fault(), (3, PlcFault::PrevNullified));
    let log = Made::new().update(0, 2, 1).update(1, 2, 2).update(0, 1, 3).update(2, 0, 4);
    assert_eq!(log.undone(&[1, 2]).fault(), (4, PlcFault::PrevNullified));
}

#[test]
fn nothing_follows_a_tombstone_but_it_can_be_undone() {
    let log = Made::new().tombstone(0, 2, 1);
    assert!(log.judge().unwrap().is_tombstoned());
    let rejection = log.clone().update(1, 0, 2).judge().unwrap_err();
    assert_eq!((rejection.fault, rejection.code()), (PlcFault::Tombstoned, "plc/tombstoned"));
    let history = log.update(0, 1, 2).undone(&[1]).judge().unwrap();
    assert!(!history.is_tombstoned());
}

#[test]
fn an_operation_must_follow_one_of_the_log() {
    let log = Made::new();
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
fn a_plain_log_has_no_operations_that_were_undone() {
    let log = Made::new().update(0, 2, 1).update(0, 1, 2);
    let plain = log.entries.into_iter().map(|entry| entry.operation).collect();
    let refusal = verify_plain_log(plain, &Options::default()).unwrap_err();
    assert_eq!((refusal.index, refusal.fault), (2, PlcFault::Prev));
}

#[test]
fn an_account_of_the_first_months_is_taken_over_by_its_recovery_key_first() {
    let did_key = |number: u8| key(number).public_key().to_did_key();
    let create = UnsignedOperation::Create(LegacyCreate {
        signing_key: did_key(1),
        recovery_key: did_key(0),
        handle: "alice.test".to_owned(),
        service: "https://a.test".to_owned(),
    });
    let genesis = signed(create, 1);
    let log = Made { did: genesis.did().unwrap(), entries: Vec::new() }.and(genesis, 0);
    let history = log.judge().unwrap();
    assert_eq!(
        (history.operations()[0].signer, history.data().unwrap().host()),
        (1, Some("https://a.test"))
    );
    assert_eq!(history.signing_key(), Some(key(1).public_key()));
    assert!(log.update(0, 1, 1).update(0, 0, 2).undone(&[1]).judge().is_ok());
}

#[test]
fn a_limit_is_a_rejection_that_names_it() {
    let limits = Limits { rotation_keys: 2, ..Limits::default() };
    let options = Options { limits, did: None };
    let rejection = verify_audit_log(Made::new().entries, &options).unwrap_err();
    assert_eq!(rejection.fault, PlcFault::Form(OperationFault::Limit("rotation_keys")));
    assert_eq!(rejection.code(), "plc/limit");
    assert!(rejection.to_string().contains("entry 0 of the log: the limit"));
}

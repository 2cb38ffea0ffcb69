//! Audit logs of did:plc that are signed by the target itself get the verdict of a plain model of the rules.

use atproto::plc::{AccountData, AuditEntry, Operation, UnsignedOperation, Update};
use atproto::syntax::{Datetime, DatetimeBuf};
use codec::Cid;
use crypto::{Curve, SecretKey};
use simnet::time::{START_MICROS, datetime};
use verify::plc::{self, Options};

/// Runs the target on one input: five bytes an operation.
pub(crate) fn run(input: &[u8]) {
    let steps: Vec<Step> = input.as_chunks().0.iter().take(MAX_STEPS).map(Step::read).collect();
    if steps.is_empty() {
        return;
    }
    let entries = entries(&steps);
    let model = Model::of(&steps);
    let stated = entries.into_iter().zip(&model.nullified);
    let entries = stated.map(|(entry, nullified)| AuditEntry { nullified: *nullified, ..entry });
    match plc::verify_audit_log(entries.collect(), &Options::default()) {
        Ok(history) => {
            assert_eq!(model.invalid, None);
            let found: Vec<bool> = history.operations().iter().map(|of| of.nullified).collect();
            assert_eq!(found, model.nullified);
        }
        Err(rejection) => assert_eq!(Some(rejection.index), model.invalid, "{rejection}"),
    }
}

/// One operation of the plan.
struct Step {
    /// Index of the predecessor; of the first operation without meaning.
    prev: usize,
    signer: u8,
    /// The rotation keys, in descending authority.
    keys: Vec<u8>,
    is_tombstone: bool,
    hours_after_the_one_before: u8,
}

impl Step {
    fn read(bytes: &[u8; 5]) -> Self {
        let [prev, signer, keys, rotation, hours] = *bytes;
        let mut keys: Vec<u8> = (0..KEYS).filter(|key| keys >> key & 1 == 1).collect();
        let middle = usize::from(rotation).checked_rem(keys.len()).unwrap_or(0);
        keys.rotate_left(middle);
        Self {
            prev: usize::from(prev),
            signer: signer % KEYS,
            keys,
            is_tombstone: rotation >= 240,
            hours_after_the_one_before: hours,
        }
    }
}

/// The verdict by the rules of the specification, over indexes.
struct Model {
    /// Index of the first invalid operation.
    invalid: Option<usize>,
    nullified: Vec<bool>,
}

impl Model {
    fn of(steps: &[Step]) -> Self {
        let mut model = Self { invalid: None, nullified: vec![false; steps.len()] };
        let mut in_force = vec![0];
        if steps[0].is_tombstone || !steps[0].keys.contains(&steps[0].signer) {
            return Self { invalid: Some(0), ..model };
        }
        for at in 1..steps.len() {
            match model.follow(steps, &in_force, at) {
                Some(kept) => {
                    in_force.drain(kept..).for_each(|old| model.nullified[old] = true);
                    in_force.push(at);
                }
                None => return Self { invalid: Some(at), ..model },
            }
        }
        model
    }

    /// The number of operations in force up to the predecessor of a valid operation.
    fn follow(&self, steps: &[Step], in_force: &[usize], at: usize) -> Option<usize> {
        let (step, prev) = (&steps[at], steps[at].prev % at);
        let place = in_force.iter().position(|one| *one == prev)?;
        let priority = |of: &Step| steps[prev].keys.iter().position(|key| *key == of.signer);
        let own = priority(step).filter(|_| !steps[prev].is_tombstone)?;
        if step.hours_after_the_one_before == 0 {
            return None;
        }
        if let Some(successor) = in_force.get(place + 1) {
            let hours = time(steps, at) - time(steps, *successor);
            if own >= priority(&steps[*successor])? || hours > 72 {
                return None;
            }
        }
        Some(place + 1)
    }
}

/// Hours since the first operation.
fn time(steps: &[Step], at: usize) -> u64 {
    steps[1..=at].iter().map(|step| u64::from(step.hours_after_the_one_before)).sum()
}

/// The signed entries, none stated as nullified.
fn entries(steps: &[Step]) -> Vec<AuditEntry> {
    let mut operations: Vec<Operation> = Vec::new();
    for (at, step) in steps.iter().enumerate() {
        let prev = (at > 0).then(|| operations[step.prev % at].cid());
        operations.push(signed(step, prev, at));
    }
    let did = operations[0].did().unwrap_or_else(|| OTHER_DID.parse().expect("a DID"));
    let entry = |(at, operation): (usize, Operation)| AuditEntry {
        did: did.clone(),
        cid: operation.cid(),
        operation,
        nullified: false,
        created_at: created_at(time(steps, at)),
    };
    operations.into_iter().enumerate().map(entry).collect()
}

/// An operation, unlike those before it.
fn signed(step: &Step, prev: Option<Cid>, at: usize) -> Operation {
    let unsigned = match (step.is_tombstone, prev) {
        (true, Some(prev)) => UnsignedOperation::Tombstone { prev },
        _ => {
            let rotation_keys = if step.is_tombstone {
                Vec::new()
            } else {
                step.keys.iter().map(|key| secret(*key).public_key().to_did_key()).collect()
            };
            let also_known_as = vec![format!("at://a{at}.test")];
            let data = AccountData { rotation_keys, also_known_as, ..AccountData::default() };
            UnsignedOperation::Update(Update { data, prev })
        }
    };
    let sig = secret(step.signer).sign(&unsigned.to_bytes());
    unsigned.with_signature(sig)
}

fn created_at(hours: u64) -> DatetimeBuf {
    let text = datetime(START_MICROS + hours * 3_600_000_000);
    Datetime::parse(&text).expect("a datetime").to_buf()
}

fn secret(number: u8) -> SecretKey {
    let curve = if number.is_multiple_of(2) { Curve::K256 } else { Curve::P256 };
    SecretKey::from_bytes(curve, &[number + 1; 32]).expect("a number below the order")
}

/// The number of keys.
const KEYS: u8 = 4;
const MAX_STEPS: usize = 16;
const OTHER_DID: &str = "did:plc:ewvi7nxzyoun6zhxrhs64oiz";

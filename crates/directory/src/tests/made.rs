//! Made histories: random operations, valid and not, whose verdicts an oracle knows from how they were made.
//!
//! The oracle has no keys, signatures or hashes: only who signed what after which operation, and when.

use std::collections::BTreeMap;

use atproto::plc::{
    AccountData, ExportLine, Operation, StatedOperation, UnsignedOperation, Update,
};
use atproto::syntax::{DatetimeBuf, DidBuf};
use codec::Cid;
use crypto::{Curve, SecretKey};
use store::PlcMirror;

use super::support::TestMirror;
use crate::Answer;

/// A generator of random numbers.
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// An operation of the oracle.
#[derive(Clone, Debug)]
struct Made {
    cid: Cid,
    /// The keys that may sign the next one, by number.
    keys: Vec<usize>,
    is_tombstone: bool,
    /// The place of the signing key among the keys of the predecessor.
    priority: usize,
    hours: i64,
    nullified: bool,
}

/// Makes operations of some accounts, and knows the verdict on each.
pub(super) struct Maker {
    random: Random,
    accounts: Vec<(DidBuf, Vec<Made>)>,
    seq: u64,
    hours: i64,
    pub(super) lines: Vec<ExportLine>,
    /// The numbers of the operations that must be accepted.
    pub(super) valid: Vec<u64>,
}

impl Maker {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            accounts: Vec::new(),
            seq: 0,
            hours: 0,
            lines: Vec::new(),
            valid: Vec::new(),
        }
    }

    /// The first operations of a number of accounts.
    pub(super) fn accounts(count: usize) -> Vec<ExportLine> {
        let mut maker = Self::new(1);
        for _ in 0..count {
            maker.seq += 1;
            maker.hours += 1;
            let operation = maker.operation(None, &[0], 0, false);
            maker.push(&operation.did().unwrap(), &operation, maker.hours, true);
        }
        maker.lines
    }

    /// Makes one operation more.
    pub(super) fn make(&mut self) {
        self.seq += 1 + u64::from(self.random.below(9) == 0);
        self.hours += [0, 0, 0, 1, 6][self.random.below(5)];
        if self.accounts.is_empty() || self.random.below(15) == 0 {
            self.make_account();
        } else {
            self.make_next();
        }
    }

    fn make_account(&mut self) {
        let keys = self.some_keys();
        let signer = keys[self.random.below(keys.len())];
        // A tenth is signed by a key that it does not list.
        let signer = if self.random.below(10) == 0 { OTHER_KEY } else { signer };
        let operation = self.operation(None, &keys, signer, false);
        let did = operation.did().unwrap();
        let is_valid = keys.contains(&signer);
        self.push(&did, &operation, self.hours, is_valid);
        if is_valid {
            let made = self.made(&operation, keys, 0, self.hours);
            self.accounts.push((did, vec![made]));
        }
    }

    fn make_next(&mut self) {
        let account = self.random.below(self.accounts.len());
        let (did, history) = self.accounts[account].clone();
        // Mostly the last operation in force, sometimes any, sometimes one of nobody.
        let last = history.iter().rposition(|made| !made.nullified).unwrap();
        let prev = match self.random.below(10) {
            0..=5 => Some(last),
            6..=8 => Some(self.random.below(history.len())),
            _ => None,
        };
        let prev_cid =
            prev.map_or(Cid::of(codec::cid::Codec::DagCbor, b"nobody"), |at| history[at].cid);
        let candidates = prev.map_or(vec![0], |at| history[at].keys.clone());
        let signer = match self.random.below(6) {
            0 => self.random.below(KEYS),
            _ if candidates.is_empty() => 0,
            _ => candidates[self.random.below(candidates.len())],
        };
        let is_tombstone = self.random.below(12) == 0;
        let keys = self.some_keys();
        let keys = if self.random.below(25) == 0 { Vec::new() } else { keys };
        // A tenth is not later than the operation before.
        let newest = history.iter().map(|made| made.hours).max().unwrap();
        let hours = if self.random.below(10) == 0 { newest } else { self.hours.max(newest + 1) };
        self.hours = self.hours.max(hours);
        let operation = self.operation(Some(prev_cid), &keys, signer, is_tombstone);
        let nullified = verdict(&history, prev, signer, hours);
        self.push(&did, &operation, hours, nullified.is_some());
        if let Some(nullified) = nullified {
            let priority = candidates.iter().position(|key| *key == signer).unwrap();
            let mut made = self.made(&operation, keys, priority, hours);
            made.is_tombstone = is_tombstone;
            let history = &mut self.accounts[account].1;
            nullified.into_iter().for_each(|at| history[at].nullified = true);
            history.push(made);
        }
    }

    fn made(&self, operation: &Operation, keys: Vec<usize>, priority: usize, hours: i64) -> Made {
        let cid = operation.cid();
        Made { cid, keys, is_tombstone: false, priority, hours, nullified: false }
    }

    fn some_keys(&mut self) -> Vec<usize> {
        let count = 1 + self.random.below(3);
        let first = self.random.below(KEYS);
        (0..count).map(|key| (first + key) % KEYS).collect()
    }

    fn operation(
        &mut self,
        prev: Option<Cid>,
        keys: &[usize],
        signer: usize,
        is_tombstone: bool,
    ) -> Operation {
        let data = AccountData {
            rotation_keys: keys.iter().map(|key| secret(*key).public_key().to_did_key()).collect(),
            also_known_as: vec![format!("at://made{}.test", self.seq)],
            ..AccountData::default()
        };
        let unsigned = match prev {
            Some(prev) if is_tombstone => UnsignedOperation::Tombstone { prev },
            prev => UnsignedOperation::Update(Update { data, prev }),
        };
        let sig = secret(signer).sign(&unsigned.to_bytes());
        unsigned.with_signature(sig)
    }

    fn push(&mut self, did: &DidBuf, operation: &Operation, hours: i64, is_valid: bool) {
        let micros = START_MICROS + hours * 3_600_000_000;
        let stated = StatedOperation {
            did: did.clone(),
            operation: operation.clone(),
            cid: operation.cid(),
            created_at: DatetimeBuf::from_unix_micros(micros).unwrap(),
        };
        self.lines.push(ExportLine { seq: self.seq, did: did.clone(), stated: Ok(stated) });
        if is_valid {
            self.valid.push(self.seq);
        }
    }

    /// The CIDs of every account and which are nullified.
    pub(super) fn histories(&self) -> BTreeMap<String, Vec<(String, bool)>> {
        let history = |(did, history): &(DidBuf, Vec<Made>)| {
            let operations = history.iter().map(|made| (made.cid.to_string(), made.nullified));
            (did.to_string(), operations.collect())
        };
        self.accounts.iter().map(history).collect()
    }
}

/// The places of the operations that an operation nullifies; `None` if it must be refused.
fn verdict(history: &[Made], prev: Option<usize>, signer: usize, hours: i64) -> Option<Vec<usize>> {
    let prev = prev?;
    let before = &history[prev];
    let priority = before.keys.iter().position(|key| *key == signer)?;
    let nullified: Vec<usize> =
        (prev + 1..history.len()).filter(|at| !history[*at].nullified).collect();
    let may_nullify = nullified.first().is_none_or(|first| {
        priority < history[*first].priority && hours - history[*first].hours <= 72
    });
    let is_later = history.iter().all(|made| made.hours < hours);
    (!before.nullified && !before.is_tombstone && may_nullify && is_later).then_some(nullified)
}

fn secret(number: usize) -> SecretKey {
    let curve = if number.is_multiple_of(2) { Curve::K256 } else { Curve::P256 };
    SecretKey::from_bytes(curve, &[1 + number as u8; 32]).unwrap()
}

const KEYS: usize = 6;
const OTHER_KEY: usize = 9;
const START_MICROS: i64 = 1_767_225_600_000_000;

#[test]
fn verdicts_on_made_operations_are_those_of_the_oracle() {
    let (mut made, mut valid, mut nullified) = (0, 0, 0);
    for seed in 0..12 {
        let (mut maker, mirror) = (Maker::new(seed), TestMirror::new());
        (0..250).for_each(|_| maker.make());
        let mut refused = Vec::new();
        for lines in maker.lines.chunks(1 + seed as usize * 9) {
            let mut writer = PlcMirror::open(&mirror.path(), "https://plc.directory").unwrap();
            let page = writer.apply(lines).unwrap();
            refused.extend(page.refused.into_iter().map(|refused| refused.seq));
        }
        let reader = mirror.reader();
        let accepted: Vec<u64> =
            reader.operations_after(0, usize::MAX).unwrap().iter().map(|of| of.seq).collect();
        assert_eq!(accepted, maker.valid, "seed {seed}");
        assert_eq!(accepted.len() + refused.len(), maker.lines.len());
        for (did, history) in maker.histories() {
            let stored = reader.operations(&did).unwrap();
            let stored: Vec<_> = stored.into_iter().map(|of| (of.cid, of.nullified)).collect();
            assert_eq!(stored, history, "seed {seed}, {did}");
            let log = Answer::to(&reader, &format!("/{did}/log"), None).unwrap();
            let in_force = history.iter().filter(|(_, nullified)| !nullified).count();
            assert_eq!(log.body.matches("\"sig\":").count(), in_force);
            nullified += history.len() - in_force;
        }
        (made, valid) = (made + maker.lines.len(), valid + accepted.len());
    }
    assert_eq!(made, 3_000);
    assert!(
        (800..2_600).contains(&valid) && nullified > 40,
        "{valid} valid, {nullified} nullified"
    );
}

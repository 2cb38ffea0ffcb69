//! One operation after the other: which do they follow, who signed, and what do they undo?

use atproto::plc::{Operation, UnsignedOperation};
use atproto::syntax::{DatetimeBuf, DidBuf};
use codec::Cid;
use crypto::{PublicKey, SignatureFault};
use kernels::sha256;

use super::{AcceptedOperation, History, Options, PlcFault, PlcRejection, reject};

/// The operations so far.
#[derive(Default)]
pub(super) struct Chain {
    operations: Vec<AcceptedOperation>,
    /// Those that hold, each following the one before it.
    links: Vec<Link>,
    did: Option<DidBuf>,
}

/// An operation that holds.
struct Link {
    /// Where it stands among the operations.
    at: usize,
    cid: Cid,
    /// Who may sign what follows it; none behind a tombstone.
    keys: Vec<PublicKey>,
}

/// What a directory says of an operation.
pub(super) struct Stated {
    pub(super) did: DidBuf,
    pub(super) cid: Cid,
    pub(super) created_at: DatetimeBuf,
}

impl Chain {
    /// Judges the next operation of the log.
    pub(super) fn append(
        &mut self,
        operation: Operation,
        stated: Option<&Stated>,
        options: &Options,
    ) -> Result<(), PlcRejection> {
        let index = self.operations.len();
        self.judge(operation, stated, options).or_else(|fault| reject(index, fault))
    }

    fn judge(
        &mut self,
        operation: Operation,
        stated: Option<&Stated>,
        options: &Options,
    ) -> Result<(), PlcFault> {
        options.limits.check(&operation).map_err(PlcFault::Form)?;
        let created_at_micros = stated.map(|stated| stated.created_at.as_datetime().unix_micros());
        let (cid, keys) = (operation.cid(), rotation_keys(&operation)?);
        self.check_stated(cid, stated)?;
        let (signer, kept) = match self.links.is_empty() {
            true => (self.judge_genesis(&operation, &keys, stated, options)?, 0),
            false => self.judge_next(&operation, created_at_micros)?,
        };
        self.undo_behind(kept);
        self.links.push(Link { at: self.operations.len(), cid, keys });
        let nullified = false;
        self.operations.push(AcceptedOperation {
            operation,
            cid,
            signer,
            created_at_micros,
            nullified,
        });
        Ok(())
    }

    /// Whose operation it is, and which, must be as the entry says.
    fn check_stated(&self, cid: Cid, stated: Option<&Stated>) -> Result<(), PlcFault> {
        let Some(stated) = stated else { return Ok(()) };
        if stated.cid != cid {
            return Err(PlcFault::Cid);
        }
        match &self.did {
            Some(did) if *did != stated.did => Err(PlcFault::Did),
            _ => Ok(()),
        }
    }

    /// Judges the operation that makes the DID, and answers which of its own keys signed it.
    fn judge_genesis(
        &mut self,
        operation: &Operation,
        keys: &[PublicKey],
        stated: Option<&Stated>,
        options: &Options,
    ) -> Result<usize, PlcFault> {
        let did = operation.did().ok_or(PlcFault::Genesis)?;
        let expected = [options.did.as_ref(), stated.map(|stated| &stated.did)];
        if expected.into_iter().flatten().any(|expected| *expected != did) {
            return Err(PlcFault::Did);
        }
        self.did = Some(did);
        signer(operation, keys)
    }

    /// Judges an operation that follows another. Answers which of the other's keys signed it, and how
    /// many links hold in front of it.
    fn judge_next(
        &self,
        operation: &Operation,
        created_at_micros: Option<i64>,
    ) -> Result<(usize, usize), PlcFault> {
        let kept = self.find_prev(operation)? + 1;
        let undone = self.links.get(kept).map(|link| &self.operations[link.at]);
        if undone.is_some() && created_at_micros.is_none() {
            return Err(PlcFault::Prev);
        }
        let signer = signer(operation, &self.links[kept - 1].keys)?;
        if let Some(undone) = undone {
            may_undo(signer, created_at_micros, undone)?;
        }
        let last = self.operations.last().and_then(|last| last.created_at_micros);
        match last.zip(created_at_micros) {
            Some((last, now)) if now <= last => Err(PlcFault::CreatedAt),
            _ => Ok((signer, kept)),
        }
    }

    /// The link that an operation follows. Whatever lies behind it is undone if the operation holds, so
    /// that all searches of a log together look at each link once.
    fn find_prev(&self, operation: &Operation) -> Result<usize, PlcFault> {
        let prev = operation.prev().ok_or(PlcFault::Prev)?;
        let Some(at) = self.links.iter().rposition(|link| link.cid == prev) else {
            let is_known = self.operations.iter().any(|judged| judged.cid == prev);
            return Err(if is_known { PlcFault::PrevNullified } else { PlcFault::Prev });
        };
        match self.operations[self.links[at].at].operation.unsigned() {
            UnsignedOperation::Tombstone { .. } => Err(PlcFault::Tombstoned),
            _ => Ok(at),
        }
    }

    fn undo_behind(&mut self, kept: usize) {
        for link in self.links.drain(kept..) {
            self.operations[link.at].nullified = true;
        }
    }

    /// Holds the claims of an audit log, one an operation, against what was found.
    pub(super) fn check_nullified(&self, claims: &[bool]) -> Result<(), PlcRejection> {
        let mut pairs = self.operations.iter().zip(claims);
        match pairs.position(|(judged, claim)| judged.nullified != *claim) {
            Some(index) => reject(index, PlcFault::Nullified),
            None => Ok(()),
        }
    }

    pub(super) fn into_history(self) -> Result<History, PlcRejection> {
        let (Some(did), Some(last)) = (self.did, self.links.last()) else {
            return reject(0, PlcFault::Empty);
        };
        let data = self.operations[last.at].operation.unsigned().to_data();
        Ok(History { did, operations: self.operations, data })
    }
}

/// The keys that may sign what follows, all of which must be keys.
fn rotation_keys(operation: &Operation) -> Result<Vec<PublicKey>, PlcFault> {
    let texts = operation.unsigned().to_data().unwrap_or_default().rotation_keys;
    let key = |(at, text): (usize, &String)| {
        PublicKey::from_did_key(text).map_err(|_| PlcFault::RotationKey(at))
    };
    texts.iter().enumerate().map(key).collect()
}

/// The first of `keys` that signed; a key that comes twice thus counts as the mightier.
fn signer(operation: &Operation, keys: &[PublicKey]) -> Result<usize, PlcFault> {
    let digest = sha256::digest(&operation.unsigned().to_bytes());
    let mut found = PlcFault::NoKey;
    for (at, key) in keys.iter().enumerate() {
        match key.verify_digest(&digest, operation.sig()) {
            Ok(()) => return Ok(at),
            // What is wrong with the signature itself says more than that a key did not make it.
            Err(SignatureFault::Mismatch) if found != PlcFault::NoKey => {}
            Err(fault) => found = PlcFault::Signature(fault),
        }
    }
    Err(found)
}

/// Whether a key of this rank can undo an operation at this time.
fn may_undo(
    signer: usize,
    created_at_micros: Option<i64>,
    undone: &AcceptedOperation,
) -> Result<(), PlcFault> {
    if signer >= undone.signer {
        return Err(PlcFault::Priority);
    }
    match created_at_micros.zip(undone.created_at_micros) {
        Some((now, then)) if now - then <= WINDOW_MICROS => Ok(()),
        _ => Err(PlcFault::Window),
    }
}

/// How long an operation can be undone: 72 hours, the last microsecond among them.
const WINDOW_MICROS: i64 = 72 * 3600 * 1_000_000;

//! The chain of operations: their predecessors, signers and nullified successors.

use atproto::plc::{AccountData, Limits, Operation, UnsignedOperation};
use atproto::syntax::{DatetimeBuf, DidBuf};
use codec::Cid;
use crypto::{PublicKey, SignatureFault};
use kernels::sha256;

use super::rejection::{PlcFault, PlcRejection, reject};

/// An operation that was valid when it was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AcceptedOperation {
    /// The operation.
    pub operation: Operation,
    /// Its CID.
    pub cid: Cid,
    /// Index of the signing key among the rotation keys of the predecessor.
    pub signer: usize,
    /// When the directory accepted it, in microseconds since 1970; `None` in a plain log.
    pub created_at_micros: Option<i64>,
    /// Whether a later operation nullified it.
    pub nullified: bool,
}

/// The operations of a log so far.
#[derive(Clone, Debug)]
pub(super) struct OperationChain<'o> {
    limits: &'o Limits,
    expected_did: Option<&'o DidBuf>,
    operations: Vec<AcceptedOperation>,
    /// The operations in force, each following the one before it.
    // The first is never nullified, so that there is a last one.
    links: Vec<Link>,
    did: Option<DidBuf>,
}

/// An operation in force.
#[derive(Clone, Debug)]
struct Link {
    /// Its index among the operations.
    at: usize,
    cid: Cid,
    /// The keys that may sign its successor, none after a tombstone; `None` if they were not read yet.
    keys: Option<Vec<PublicKey>>,
}

/// The fields of an audit entry that a directory states about an operation.
pub(super) struct StatedFields {
    pub(super) did: DidBuf,
    pub(super) cid: Cid,
    pub(super) created_at: DatetimeBuf,
}

impl<'o> OperationChain<'o> {
    /// An empty chain for a log of this account, if one is expected.
    pub(super) fn new(limits: &'o Limits, expected_did: Option<&'o DidBuf>) -> Self {
        let operations = Vec::new();
        let links = Vec::new();
        let did = None;
        Self { limits, expected_did, operations, links, did }
    }

    /// A chain of operations that were accepted before, which are not verified.
    pub(super) fn resume_unchecked(
        limits: &'o Limits,
        did: Option<DidBuf>,
        operations: Vec<AcceptedOperation>,
    ) -> Self {
        let in_force = operations.iter().enumerate().filter(|(_, accepted)| !accepted.nullified);
        let link = |(at, accepted): (usize, &AcceptedOperation)| Link {
            at,
            cid: accepted.cid,
            keys: None,
        };
        Self { limits, expected_did: None, links: in_force.map(link).collect(), operations, did }
    }

    /// The operations so far.
    pub(super) fn operations(&self) -> &[AcceptedOperation] {
        &self.operations
    }

    /// Checks and adds the next operation of the log. The indexes of the operations that it nullifies.
    pub(super) fn append(
        &mut self,
        operation: Operation,
        stated: Option<&StatedFields>,
    ) -> Result<Vec<usize>, PlcRejection> {
        let index = self.operations.len();
        self.try_append(operation, stated).or_else(|fault| reject(index, fault))
    }

    fn try_append(
        &mut self,
        operation: Operation,
        stated: Option<&StatedFields>,
    ) -> Result<Vec<usize>, PlcFault> {
        self.limits.check(&operation).map_err(PlcFault::Form)?;
        let created_at_micros = stated.map(|stated| stated.created_at.as_datetime().unix_micros());
        let (cid, keys) = (operation.cid(), rotation_keys(&operation)?);
        self.check_stated(cid, stated)?;
        let (signer, kept) = if self.links.is_empty() {
            (self.check_genesis(&operation, &keys, stated)?, 0)
        } else {
            self.check_next(&operation, created_at_micros)?
        };
        let nullified = self.nullify_after(kept);
        self.links.push(Link { at: self.operations.len(), cid, keys: Some(keys) });
        self.operations.push(AcceptedOperation {
            operation,
            cid,
            signer,
            created_at_micros,
            nullified: false,
        });
        Ok(nullified)
    }

    /// Compares CID and account of the operation with the entry's.
    fn check_stated(&self, cid: Cid, stated: Option<&StatedFields>) -> Result<(), PlcFault> {
        let Some(stated) = stated else { return Ok(()) };
        if stated.cid != cid {
            return Err(PlcFault::Cid);
        }
        match &self.did {
            Some(did) if *did != stated.did => Err(PlcFault::EntryDid),
            _ => Ok(()),
        }
    }

    /// Checks the operation that determines the DID, and returns which of its own keys signed it.
    fn check_genesis(
        &mut self,
        operation: &Operation,
        keys: &[PublicKey],
        stated: Option<&StatedFields>,
    ) -> Result<usize, PlcFault> {
        let did = operation.did().ok_or(PlcFault::Genesis)?;
        let expected = [self.expected_did, stated.map(|stated| &stated.did)];
        if expected.into_iter().flatten().any(|expected| *expected != did) {
            return Err(PlcFault::Did);
        }
        let signer = signer(operation, keys)?;
        self.did = Some(did);
        Ok(signer)
    }

    /// Checks an operation with a predecessor. Returns which of the predecessor's keys signed it, and the
    /// number of links up to the predecessor.
    fn check_next(
        &self,
        operation: &Operation,
        created_at_micros: Option<i64>,
    ) -> Result<(usize, usize), PlcFault> {
        let kept = self.find_prev(operation)? + 1;
        let nullified = self.links.get(kept).map(|link| &self.operations[link.at]);
        if nullified.is_some() && created_at_micros.is_none() {
            return Err(PlcFault::Prev);
        }
        let signer = self.signer_after(&self.links[kept - 1], operation)?;
        if let Some(nullified) = nullified {
            check_nullification(signer, created_at_micros, nullified)?;
        }
        let last = self.operations.last().and_then(|last| last.created_at_micros);
        match last.zip(created_at_micros) {
            Some((last, now)) if now <= last => Err(PlcFault::CreatedAt),
            _ => Ok((signer, kept)),
        }
    }

    /// Which of the keys of an operation in force signed its successor.
    fn signer_after(&self, link: &Link, successor: &Operation) -> Result<usize, PlcFault> {
        match &link.keys {
            Some(keys) => signer(successor, keys),
            None => signer(successor, &rotation_keys(&self.operations[link.at].operation)?),
        }
    }

    /// The index of the predecessor's link. The links after it are nullified if the operation is valid, so
    /// that all searches of a log together visit every link once.
    fn find_prev(&self, operation: &Operation) -> Result<usize, PlcFault> {
        let prev = operation.prev().ok_or(PlcFault::Prev)?;
        let Some(at) = self.links.iter().rposition(|link| link.cid == prev) else {
            let is_known = self.operations.iter().any(|accepted| accepted.cid == prev);
            return Err(if is_known { PlcFault::PrevNullified } else { PlcFault::Prev });
        };
        match self.operations[self.links[at].at].operation.unsigned() {
            UnsignedOperation::Tombstone { .. } => Err(PlcFault::Tombstoned),
            _ => Ok(at),
        }
    }

    /// Nullifies the links after the first `kept`, and returns the indexes of their operations.
    fn nullify_after(&mut self, kept: usize) -> Vec<usize> {
        let nullified: Vec<usize> = self.links.drain(kept..).map(|link| link.at).collect();
        nullified.iter().for_each(|at| self.operations[*at].nullified = true);
        nullified
    }

    /// Compares the statements of an audit log, one per operation, with the findings.
    pub(super) fn check_nullified(&self, stated: &[bool]) -> Result<(), PlcRejection> {
        let mut pairs = self.operations.iter().zip(stated);
        match pairs.position(|(accepted, stated)| accepted.nullified != *stated) {
            Some(index) => reject(index, PlcFault::Nullified),
            None => Ok(()),
        }
    }

    /// The account, its operations, and the data of the last operation in force.
    pub(super) fn into_parts(
        self,
    ) -> Result<(DidBuf, Vec<AcceptedOperation>, Option<AccountData>), PlcRejection> {
        let (Some(did), Some(last)) = (self.did, self.links.last()) else {
            return reject(0, PlcFault::Empty);
        };
        let data = self.operations[last.at].operation.unsigned().to_data();
        Ok((did, self.operations, data))
    }
}

/// The keys that may sign the successor, all of which must be valid.
fn rotation_keys(operation: &Operation) -> Result<Vec<PublicKey>, PlcFault> {
    let texts = operation.unsigned().to_data().unwrap_or_default().rotation_keys;
    let key = |(at, text): (usize, &String)| {
        let fault = |error| PlcFault::RotationKey { index: at, error };
        PublicKey::from_did_key(text).map_err(fault)
    };
    texts.iter().enumerate().map(key).collect()
}

/// The index of the first of `keys` that signed: a repeated key has its highest priority.
fn signer(operation: &Operation, keys: &[PublicKey]) -> Result<usize, PlcFault> {
    let digest = sha256::digest(&operation.unsigned().to_bytes());
    let mut found = PlcFault::NoKey;
    for (at, key) in keys.iter().enumerate() {
        match key.verify_digest(&digest, operation.sig()) {
            Ok(()) => return Ok(at),
            // A fault of the signature itself says more than a mismatch with one key.
            Err(SignatureFault::Mismatch) if found != PlcFault::NoKey => {}
            Err(fault) => found = PlcFault::Signature(fault),
        }
    }
    Err(found)
}

/// Checks that this signer may nullify an operation at this time.
fn check_nullification(
    signer: usize,
    created_at_micros: Option<i64>,
    nullified: &AcceptedOperation,
) -> Result<(), PlcFault> {
    if signer >= nullified.signer {
        return Err(PlcFault::Priority);
    }
    match created_at_micros.zip(nullified.created_at_micros) {
        Some((now, then)) if now - then <= WINDOW_MICROS => Ok(()),
        _ => Err(PlcFault::Window),
    }
}

/// How long an operation can be nullified, in microseconds: 72 hours, inclusive.
const WINDOW_MICROS: i64 = 72 * 3600 * 1_000_000;

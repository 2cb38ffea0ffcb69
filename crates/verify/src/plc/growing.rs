//! A history that grows: every operation is verified when it comes, after the accepted ones before it.

use atproto::plc::{Limits, OperationFault, StatedOperation};
use atproto::syntax::DidBuf;

use super::chain::{AcceptedOperation, OperationChain, StatedFields};
use super::rejection::{PlcFault, PlcRejection, reject};

/// The history of one account, to which operations are added as a directory accepts them.
///
/// An operation that is rejected leaves the history as it was.
///
/// ```
/// use wireproof::atproto::plc::{AccountData, Limits, StatedOperation, UnsignedOperation, Update};
/// use wireproof::crypto::{Curve, SecretKey};
/// use wireproof::verify::plc::GrowingHistory;
///
/// let key = SecretKey::from_bytes(Curve::K256, &[7; 32])?;
/// let data = AccountData { rotation_keys: vec![key.public_key().to_did_key()], ..AccountData::default() };
/// let genesis = UnsignedOperation::Update(Update { data, prev: None });
/// let sig = key.sign(&genesis.to_bytes());
/// let operation = genesis.with_signature(sig);
///
/// let limits = Limits::default();
/// let mut history = GrowingHistory::new(&limits);
/// let (did, cid) = (operation.did().unwrap(), operation.cid());
/// let stated = StatedOperation { did, operation, cid, created_at: "2026-11-26T12:00:00.000Z".parse().unwrap() };
/// assert_eq!(history.append(stated.clone()), Ok(vec![]));
/// assert_eq!(history.append(stated).unwrap_err().code(), "plc/prev");
/// assert_eq!(history.operations().len(), 1);
/// # Ok::<(), wireproof::crypto::KeyError>(())
/// ```
#[derive(Clone, Debug)]
pub struct GrowingHistory<'l> {
    limits: &'l Limits,
    chain: OperationChain<'l>,
}

impl<'l> GrowingHistory<'l> {
    /// An empty history.
    pub fn new(limits: &'l Limits) -> Self {
        Self { limits, chain: OperationChain::new(limits, None) }
    }

    /// The history of `did` with operations that [`append`](Self::append) accepted before, in its order, which the caller
    /// has stored: they are not verified again.
    pub fn resume_unchecked(
        limits: &'l Limits,
        did: DidBuf,
        operations: Vec<AcceptedOperation>,
    ) -> Self {
        let did = (!operations.is_empty()).then_some(did);
        Self { limits, chain: OperationChain::resume_unchecked(limits, did, operations) }
    }

    /// The operations in the order in which they were added, nullified ones included.
    pub fn operations(&self) -> &[AcceptedOperation] {
        self.chain.operations()
    }

    /// Verifies the next operation and adds it. Returns the indexes of the operations that it nullifies.
    ///
    /// # Errors
    /// If it breaks a rule, or the history has as many operations as the limit. The rejection has the number of
    /// operations before it.
    pub fn append(&mut self, stated: StatedOperation) -> Result<Vec<usize>, PlcRejection> {
        let StatedOperation { did, operation, cid, created_at } = stated;
        let (count, limit) = (self.operations().len(), self.limits.operations);
        if count >= limit {
            let fault = OperationFault::Limit { name: "operations", limit, found: count + 1 };
            return reject(count, PlcFault::Form(fault));
        }
        self.chain.append(operation, Some(&StatedFields { did, cid, created_at }))
    }
}

//! Lines of the export of a directory: the operations of all accounts, in the order in which the directory numbered them.

use codec::Cid;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{Operation, OperationFault};
use crate::syntax::{DatetimeBuf, DidBuf};

/// A line of an export. Its content is not verified.
///
/// ```
/// use wireproof::atproto::plc::{ExportLine, OperationFault};
/// let line = br#"{"type":"sequenced_op","seq":7,"did":"did:plc:ewvi7nxzyoun6zhxrhs64oiz","operation":{},"cid":"","createdAt":""}"#;
/// let line = ExportLine::parse(line)?;
/// assert_eq!((line.seq, line.stated.unwrap_err()), (7, OperationFault::Missing("sig")));
/// # Ok::<(), OperationFault>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportLine {
    /// The number of the operation. Numbers rise, and some are skipped.
    pub seq: u64,
    /// The account.
    pub did: DidBuf,
    /// The operation, or why it is malformed.
    pub stated: Result<StatedOperation, OperationFault>,
}

/// An operation, and the statements of the directory on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatedOperation {
    /// The account.
    pub did: DidBuf,
    /// The operation.
    pub operation: Operation,
    /// Its CID.
    pub cid: Cid,
    /// When the directory accepted it.
    pub created_at: DatetimeBuf,
}

/// The fields of a line; others are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct LineFields<'l> {
    seq: Option<u64>,
    did: Option<String>,
    #[serde(borrow)]
    operation: Option<&'l RawValue>,
    cid: Option<String>,
    created_at: Option<String>,
}

impl ExportLine {
    /// Reads a line from its JSON.
    ///
    /// # Errors
    /// If it is not the JSON of a numbered operation of an account. An operation that is malformed is part of the line.
    pub fn parse(json: &[u8]) -> Result<Self, OperationFault> {
        let fields: LineFields<'_> = serde_json::from_slice(json)?;
        let seq = fields.seq.ok_or(OperationFault::Missing("seq"))?;
        fields.numbered(seq)
    }

    /// Reads a line of an export by time, which has no number, and gives it this one.
    ///
    /// # Errors
    /// As [`parse`](Self::parse).
    pub fn parse_unnumbered(json: &[u8], seq: u64) -> Result<Self, OperationFault> {
        let fields: LineFields<'_> = serde_json::from_slice(json)?;
        fields.numbered(seq)
    }
}

impl LineFields<'_> {
    fn numbered(&self, seq: u64) -> Result<ExportLine, OperationFault> {
        let did = self.did.as_deref().ok_or(OperationFault::Missing("did"))?;
        let did: DidBuf = did.parse().map_err(|_| OperationFault::Field("did"))?;
        Ok(ExportLine { seq, stated: self.stated(&did), did })
    }

    fn stated(&self, did: &DidBuf) -> Result<StatedOperation, OperationFault> {
        let operation = self.operation.ok_or(OperationFault::Missing("operation"))?;
        let cid = self.cid.as_deref().ok_or(OperationFault::Missing("cid"))?;
        let created_at = self.created_at.as_deref().ok_or(OperationFault::Missing("createdAt"))?;
        Ok(StatedOperation {
            did: did.clone(),
            operation: Operation::parse(operation.get().as_bytes())?,
            cid: cid.parse().map_err(|_| OperationFault::Field("cid"))?,
            created_at: created_at.parse().map_err(|_| OperationFault::Field("createdAt"))?,
        })
    }
}

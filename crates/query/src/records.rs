//! The records of operations: records stored apart, and records in stored frames.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use archive::{FrameRecords, HideList, OpPlace};
use async_trait::async_trait;
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{Array, ArrayRef, BinaryViewBuilder};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, Int64Type};
use datafusion::common::{Result, internal_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::{bytes, columns, texts};

/// `stored_record(record, cid, action, did, arrival, collection, rkey)`: the record of an operation.
#[derive(Debug)]
pub(crate) struct StoredRecord {
    frames: Arc<FrameRecords>,
    hidden: Arc<HideList>,
    signature: Signature,
}

impl StoredRecord {
    /// The name of the function.
    pub(crate) const NAME: &str = "stored_record";

    /// The function; a hidden record is null.
    pub(crate) fn function(frames: FrameRecords, hidden: Arc<HideList>) -> ScalarUDF {
        // It reads files: nothing may run it once more than a row needs it.
        let signature = Signature::any(7, Volatility::Volatile);
        let records = Self { frames: Arc::new(frames), hidden, signature };
        AsyncScalarUDF::new(Arc::new(records)).into_scalar_udf()
    }
}

impl ScalarUDFImpl for StoredRecord {
    fn name(&self) -> &str {
        Self::NAME
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::BinaryView)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("stored_record is asynchronous")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for StoredRecord {
    fn ideal_batch_size(&self) -> Option<usize> {
        Some(BATCH_OPS)
    }

    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = columns(&args)?;
        let (stored, cids) = (bytes(&columns[0])?, bytes(&columns[1])?);
        let [actions, dids] = [texts(&columns[2])?, texts(&columns[3])?];
        let arrivals = cast(&columns[4], &DataType::Int64)?;
        let arrivals = arrivals.as_primitive::<Int64Type>();
        let [collections, rkeys] = [texts(&columns[5])?, texts(&columns[6])?];
        let is_hidden = |row: usize| {
            self.hidden.has_record(dids.value(row), collections.value(row), rkeys.value(row))
        };
        let is_in_frame = |row: &usize| {
            stored.is_null(*row)
                && cids.is_null(*row)
                && actions.value(*row) != "delete"
                && !is_hidden(*row)
        };
        let rows: Vec<usize> = (0..args.number_rows).filter(is_in_frame).collect();
        let places: Vec<OpPlace<'_>> = rows
            .iter()
            .map(|&row| OpPlace {
                did: dids.value(row),
                arrival: arrivals.value(row),
                collection: collections.value(row),
                rkey: rkeys.value(row),
            })
            .collect();
        let found = self.frames.find(&places).await;
        let found = found.map_err(|error| DataFusionError::External(Box::new(error)))?;
        let mut found = rows.into_iter().zip(found).peekable();
        let mut records = BinaryViewBuilder::with_capacity(args.number_rows);
        for row in 0..args.number_rows {
            match found.next_if(|(place, _)| *place == row) {
                Some((_, record)) => records.append_option(record),
                None => {
                    let is_shown = stored.is_valid(row) && !is_hidden(row);
                    records.append_option(is_shown.then(|| stored.value(row)));
                }
            }
        }
        let records: ArrayRef = Arc::new(records.finish());
        Ok(ColumnarValue::Array(records))
    }
}

impl PartialEq for StoredRecord {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.frames, &other.frames)
    }
}

impl Eq for StoredRecord {}

impl Hash for StoredRecord {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.frames).hash(state);
    }
}

/// Operations whose records are held at once: at most 1 MiB each.
const BATCH_OPS: usize = 1024;

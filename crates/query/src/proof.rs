//! `proof(did, collection, rkey)`: the CAR slice that proves the newest stored state of a record.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use archive::Archive;
use async_trait::async_trait;
use datafusion::arrow::array::{Array, ArrayRef, BinaryBuilder};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err};
use datafusion::error::DataFusionError;
use datafusion::logical_expr::async_udf::{AsyncScalarUDF, AsyncScalarUDFImpl};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::{columns, texts};

#[derive(Debug)]
pub(crate) struct Proof {
    archive: Archive,
    signature: Signature,
}

impl Proof {
    pub(crate) fn function(archive: &Archive) -> ScalarUDF {
        // It reads files: nothing may run it once more than a row needs it.
        let signature = Signature::any(3, Volatility::Volatile);
        let proof = Self { archive: archive.clone(), signature };
        AsyncScalarUDF::new(Arc::new(proof)).into_scalar_udf()
    }
}

impl ScalarUDFImpl for Proof {
    fn name(&self) -> &str {
        "proof"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Binary)
    }

    fn invoke_with_args(&self, _: ScalarFunctionArgs) -> Result<ColumnarValue> {
        internal_err!("proof is asynchronous")
    }
}

#[async_trait]
impl AsyncScalarUDFImpl for Proof {
    fn ideal_batch_size(&self) -> Option<usize> {
        Some(BATCH_PROOFS)
    }

    async fn invoke_async_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = columns(&args)?;
        let [dids, collections, rkeys] =
            [texts(&columns[0])?, texts(&columns[1])?, texts(&columns[2])?];
        let mut proofs = BinaryBuilder::new();
        for row in 0..args.number_rows {
            let is_whole = [&dids, &collections, &rkeys].iter().all(|part| part.is_valid(row));
            let path = (dids.value(row), collections.value(row), rkeys.value(row));
            let proof = if is_whole {
                self.archive.prove_record(path.0, path.1, path.2).await
            } else {
                Ok(None)
            };
            let proof = proof.map_err(|error| DataFusionError::External(Box::new(error)))?;
            proofs.append_option(proof);
        }
        let proofs: ArrayRef = Arc::new(proofs.finish());
        Ok(ColumnarValue::Array(proofs))
    }
}

// A session has one archive.
impl PartialEq for Proof {
    fn eq(&self, other: &Self) -> bool {
        self.archive.storage().address() == other.archive.storage().address()
    }
}

impl Eq for Proof {}

impl Hash for Proof {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.archive.storage().address().hash(state);
    }
}

/// Proofs that are held at once: a record of 1 MiB at most, and some nodes.
const BATCH_PROOFS: usize = 64;

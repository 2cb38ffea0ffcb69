//! What the hide list leaves, as functions of SQL.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use archive::HideList;
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray};
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};

use crate::functions::{bytes, columns, texts};

/// A condition on rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Rule {
    /// `shows_account(did)`: an event without an account is shown.
    Account,
    /// `shows_record(did, collection, rkey)`.
    Record,
    /// `shows_frame(did, frame)`: none of its operations is on a hidden record.
    Frame,
}

/// A function that says whether a row is shown.
#[derive(Debug)]
pub(crate) struct Shown {
    rule: Rule,
    hidden: Arc<HideList>,
    signature: Signature,
}

impl Shown {
    /// The functions `shows_account`, `shows_record` and `shows_frame`.
    pub(crate) fn functions(hidden: &Arc<HideList>) -> [ScalarUDF; 3] {
        [(Rule::Account, 1), (Rule::Record, 3), (Rule::Frame, 2)].map(|(rule, arguments)| {
            let signature = Signature::any(arguments, Volatility::Immutable);
            ScalarUDF::new_from_impl(Self { rule, hidden: hidden.clone(), signature })
        })
    }
}

impl ScalarUDFImpl for Shown {
    fn name(&self) -> &str {
        match self.rule {
            Rule::Account => "shows_account",
            Rule::Record => "shows_record",
            Rule::Frame => "shows_frame",
        }
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Boolean)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = columns(&args)?;
        let dids = texts(&columns[0])?;
        let shown: BooleanArray = match self.rule {
            Rule::Account => {
                let shows =
                    |row: usize| dids.is_null(row) || !self.hidden.has_account(dids.value(row));
                (0..args.number_rows).map(|row| Some(shows(row))).collect()
            }
            Rule::Record => {
                let (collections, rkeys) = (texts(&columns[1])?, texts(&columns[2])?);
                let has = |row: usize| {
                    let path = (collections.value(row), rkeys.value(row));
                    self.hidden.has_record(dids.value(row), path.0, path.1)
                };
                (0..args.number_rows).map(|row| Some(!has(row))).collect()
            }
            Rule::Frame => {
                let frames = bytes(&columns[1])?;
                let shows = |row: usize| {
                    dids.is_null(row)
                        || frames.is_null(row)
                        || !self.hidden.hides_frame(dids.value(row), frames.value(row))
                };
                (0..args.number_rows).map(|row| Some(shows(row))).collect()
            }
        };
        let shown: ArrayRef = Arc::new(shown);
        Ok(ColumnarValue::Array(shown))
    }
}

// Two functions are the same if they ask the same list.
impl PartialEq for Shown {
    fn eq(&self, other: &Self) -> bool {
        self.rule == other.rule && Arc::ptr_eq(&self.hidden, &other.hidden)
    }
}

impl Eq for Shown {}

impl Hash for Shown {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.rule.hash(state);
    }
}

//! Functions of SQL for records: their CID, their JSON, their address, the values of their properties, and whether a part has all of a
//! collection.

use std::sync::Arc;

use archive::Collections;
use atproto::syntax::Datetime;
use codec::cbor::{Arena, Value, decode};
use codec::cid::Codec;
use codec::{Cid, json};
use datafusion::arrow::array::cast::AsArray;
use datafusion::arrow::array::{
    Array, ArrayRef, BinaryViewArray, BooleanArray, Int64Array, StringArray, StringViewArray,
    TimestampMicrosecondArray,
};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::{DataType, TimeUnit};
use datafusion::common::Result;
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::prelude::SessionContext;

/// A function of a row. A missing value is null: SQL goes on with the other rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Function {
    Cid,
    Json,
    AtUri,
    Covers,
    Text,
    Integer,
    Boolean,
    Time,
    PropertyJson,
}

impl Function {
    const ALL: [Self; 9] = [
        Self::Cid,
        Self::Json,
        Self::AtUri,
        Self::Covers,
        Self::Text,
        Self::Integer,
        Self::Boolean,
        Self::Time,
        Self::PropertyJson,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Cid => "cid",
            Self::Json => "json",
            Self::AtUri => "at_uri",
            Self::Covers => "covers",
            Self::Text => "record_text",
            Self::Integer => "record_integer",
            Self::Boolean => "record_boolean",
            Self::Time => "record_time",
            Self::PropertyJson => "record_json",
        }
    }

    fn arguments(self) -> usize {
        match self {
            Self::Cid | Self::Json => 1,
            Self::AtUri => 3,
            _ => 2,
        }
    }

    fn return_type(self) -> DataType {
        match self {
            Self::Integer => DataType::Int64,
            Self::Boolean | Self::Covers => DataType::Boolean,
            Self::Time => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
            _ => DataType::Utf8,
        }
    }
}

/// Adds the functions to a context.
pub(crate) fn register(context: &SessionContext) {
    for function in Function::ALL {
        let signature = Signature::any(function.arguments(), Volatility::Immutable);
        context.register_udf(ScalarUDF::new_from_impl(RecordFunction { function, signature }));
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct RecordFunction {
    function: Function,
    signature: Signature,
}

impl ScalarUDFImpl for RecordFunction {
    fn name(&self) -> &str {
        self.function.name()
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(self.function.return_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let columns = columns(&args)?;
        let rows = 0..args.number_rows;
        let values: ArrayRef = match self.function {
            Function::AtUri => {
                let [did, collection, rkey] =
                    [texts(&columns[0])?, texts(&columns[1])?, texts(&columns[2])?];
                let uri = |row: usize| {
                    let is_whole = [&did, &collection, &rkey].iter().all(|part| part.is_valid(row));
                    let parts = (did.value(row), collection.value(row), rkey.value(row));
                    is_whole.then(|| format!("at://{}/{}/{}", parts.0, parts.1, parts.2))
                };
                Arc::new(rows.map(uri).collect::<StringArray>())
            }
            Function::Covers => Arc::new(covers(&texts(&columns[0])?, &texts(&columns[1])?)),
            Function::Cid => {
                let records = bytes(&columns[0])?;
                let cid = |row: usize| {
                    let is_there = records.is_valid(row);
                    is_there.then(|| Cid::of(Codec::DagCbor, records.value(row)).to_string())
                };
                Arc::new(rows.map(cid).collect::<StringArray>())
            }
            Function::Json => {
                let records = Records::new(&columns[0])?;
                Arc::new(rows.map(|row| records.map(row, to_json)).collect::<StringArray>())
            }
            property => {
                let records = Records::new(&columns[0])?;
                let names = texts(&columns[1])?;
                return Ok(ColumnarValue::Array(properties(property, &records, &names, rows.end)));
            }
        };
        Ok(ColumnarValue::Array(values))
    }
}

/// Whether the collections of a part have all records of a collection; null if they are no [`Collections`].
fn covers(parts: &StringViewArray, collections: &StringViewArray) -> BooleanArray {
    let covers = |(part, collection): (Option<&str>, Option<&str>)| {
        let part: Collections = part?.parse().ok()?;
        Some(part.has(collection?))
    };
    parts.iter().zip(collections).map(covers).collect()
}

/// The values of a property, of the type that the function gives.
fn properties(
    function: Function,
    records: &Records,
    names: &StringViewArray,
    rows: usize,
) -> ArrayRef {
    let find = |row: usize| names.is_valid(row).then(|| names.value(row));
    macro_rules! collect {
        ($array:ty, $read:expr) => {
            (0..rows)
                .map(|row| records.map(row, |record| $read(record.get(find(row)?)?)))
                .collect::<$array>()
        };
    }
    match function {
        Function::Integer => Arc::new(collect!(Int64Array, Value::as_integer)),
        Function::Boolean => Arc::new(collect!(BooleanArray, to_boolean)),
        Function::Time => {
            Arc::new(collect!(TimestampMicrosecondArray, to_micros).with_timezone("UTC"))
        }
        Function::Text => Arc::new(collect!(StringArray, to_text)),
        _ => Arc::new(collect!(StringArray, to_json)),
    }
}

fn to_boolean(value: &Value<'_>) -> Option<bool> {
    if let Value::Boolean(boolean) = value { Some(*boolean) } else { None }
}

fn to_text(value: &Value<'_>) -> Option<String> {
    value.as_text().map(str::to_owned)
}

fn to_json(value: &Value<'_>) -> Option<String> {
    json::encode(value).ok()
}

/// The time of a datetime of the AT Protocol.
fn to_micros(value: &Value<'_>) -> Option<i64> {
    Some(Datetime::parse(value.as_text()?).ok()?.unix_micros())
}

/// A column of records.
struct Records(BinaryViewArray);

impl Records {
    fn new(column: &ArrayRef) -> Result<Self> {
        bytes(column).map(Self)
    }

    /// The value of a record; `None` if it is null, or no DAG-CBOR.
    fn map<T>(&self, row: usize, read: impl FnOnce(&Value<'_>) -> Option<T>) -> Option<T> {
        if self.0.is_null(row) {
            return None;
        }
        let arena = Arena::new();
        read(&decode(self.0.value(row), &arena).ok()?)
    }
}

/// The arguments as columns of as many rows as there are.
pub(crate) fn columns(args: &ScalarFunctionArgs) -> Result<Vec<ArrayRef>> {
    args.args.iter().map(|column| column.to_array(args.number_rows)).collect()
}

/// A column of texts, whichever type of text it has.
pub(crate) fn texts(column: &ArrayRef) -> Result<StringViewArray> {
    Ok(cast(column, &DataType::Utf8View)?.as_string_view().clone())
}

/// A column of bytes, whichever type of bytes it has.
pub(crate) fn bytes(column: &ArrayRef) -> Result<BinaryViewArray> {
    Ok(cast(column, &DataType::BinaryView)?.as_binary_view().clone())
}

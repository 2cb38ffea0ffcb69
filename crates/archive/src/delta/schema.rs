//! The schema of a table as the log states it.

use arrow_schema::{DataType, Schema, TimeUnit};
use serde_json::{Value, json};

/// The schema of a table's files and its partition columns, in the JSON of the Delta protocol.
pub(crate) fn schema_string(schema: &Schema, partition_columns: &[&str]) -> String {
    let column = |name: &str, kind: &str, nullable: bool| -> Value {
        json!({"name": name, "type": kind, "nullable": nullable, "metadata": {}})
    };
    let stored = schema
        .fields()
        .iter()
        .map(|field| column(field.name(), type_name(field.data_type()), field.is_nullable()));
    let partitions = partition_columns.iter().map(|name| column(name, "date", true));
    let fields: Vec<Value> = stored.chain(partitions).collect();
    json!({"type": "struct", "fields": fields}).to_string()
}

fn type_name(data_type: &DataType) -> &'static str {
    match data_type {
        DataType::Boolean => "boolean",
        DataType::Int16 => "short",
        DataType::Int32 => "integer",
        DataType::Int64 => "long",
        DataType::Binary => "binary",
        DataType::Timestamp(TimeUnit::Microsecond, Some(_)) => "timestamp",
        _ => "string",
    }
}

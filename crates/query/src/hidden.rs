//! The part of a table that the hide list leaves: rows and frames are removed as they are read, below everything that a
//! statement does.
//!
//! A condition above a table is not enough: the engine may evaluate a cast or a function on a row before the condition that
//! removes it, and the error, or an aggregate of the files' statistics, then shows the row. So the files are read behind a plan
//! that the engine cannot change.

use std::fmt;
use std::sync::Arc;

use archive::{HideList, Table};
use datafusion::arrow::array::{Array, ArrayRef, BooleanArray, RecordBatch, StringViewArray};
use datafusion::arrow::compute::{filter_record_batch, nullif};
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{BinaryExpr, Expr, Operator};
use datafusion::physical_plan::stream::RecordBatchStreamAdapter;
use datafusion::physical_plan::streaming::{PartitionStream, StreamingTableExec};
use datafusion::physical_plan::{ExecutionPlan, ExecutionPlanProperties};
use futures_util::{StreamExt, stream};

use crate::functions::{bytes, texts};

/// The columns that say whether a row of a table is shown; `None` for the hide list itself.
pub(crate) fn place_columns(table: Table) -> Option<&'static [&'static str]> {
    match table {
        Table::Hidden => None,
        Table::Events | Table::Snapshots | Table::Parts | Table::PlcOps | Table::Blobs => {
            Some(&["did"])
        }
        Table::Labels => Some(table.account_columns()),
        Table::Ops | Table::Records | Table::PartRecords => Some(&["did", "collection", "rkey"]),
    }
}

/// Reads the columns in `projection` of a plan's visible rows. The plan has the place columns of its table.
pub(crate) fn shown(
    plan: &Arc<dyn ExecutionPlan>,
    hidden: &Arc<HideList>,
    projection: &Vec<usize>,
    limit: Option<usize>,
) -> Result<Arc<dyn ExecutionPlan>> {
    let partitions = (0..plan.output_partitioning().partition_count()).map(|partition| {
        let (plan, hidden) = (plan.clone(), hidden.clone());
        let rows: Arc<dyn PartitionStream> =
            Arc::new(ShownRows { schema: plan.schema(), plan, partition, hidden });
        rows
    });
    let (schema, partitions) = (plan.schema(), partitions.collect());
    let plan = StreamingTableExec::try_new(schema, partitions, Some(projection), [], false, limit)?;
    Ok(Arc::new(plan))
}

/// The shown rows of a partition.
struct ShownRows {
    plan: Arc<dyn ExecutionPlan>,
    schema: SchemaRef,
    partition: usize,
    hidden: Arc<HideList>,
}

impl PartitionStream for ShownRows {
    fn schema(&self) -> &SchemaRef {
        &self.schema
    }

    fn execute(&self, context: Arc<TaskContext>) -> SendableRecordBatchStream {
        let hidden = self.hidden.clone();
        let rows = match self.plan.execute(self.partition, context) {
            Ok(rows) => rows.map(move |batch| without_hidden(&batch?, &hidden)).boxed(),
            Err(error) => stream::iter([Err(error)]).boxed(),
        };
        Box::pin(RecordBatchStreamAdapter::new(self.schema.clone(), rows))
    }
}

impl fmt::Debug for ShownRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ShownRows").field("partition", &self.partition).finish_non_exhaustive()
    }
}

/// The shown rows of a batch. A frame with a hidden record is null: it cannot be shown in part.
fn without_hidden(batch: &RecordBatch, hidden: &HideList) -> Result<RecordBatch> {
    let column = |name: &str| batch.column_by_name(name);
    let place = |name: &str| {
        column(name).ok_or_else(|| internal_datafusion_err!("a table without the column {name}"))
    };
    let dids = texts(place("did")?)?;
    let shown: BooleanArray = match column("rkey") {
        None => {
            let sources = column("src").map(texts).transpose()?;
            let is_hidden = |dids: &StringViewArray, row: usize| {
                dids.is_valid(row) && hidden.has_account(dids.value(row))
            };
            let is_shown = |row: usize| {
                let is_of_hidden = sources.as_ref().is_some_and(|dids| is_hidden(dids, row));
                !is_of_hidden && !is_hidden(&dids, row)
            };
            (0..batch.num_rows()).map(|row| Some(is_shown(row))).collect()
        }
        Some(rkeys) => {
            let (collections, rkeys) = (texts(place("collection")?)?, texts(rkeys)?);
            let is_hidden = |row: usize| {
                hidden.has_record(dids.value(row), collections.value(row), rkeys.value(row))
            };
            (0..batch.num_rows()).map(|row| Some(!is_hidden(row))).collect()
        }
    };
    let mut columns: Vec<ArrayRef> = batch.columns().to_vec();
    if let Some((at, _)) = batch.schema().column_with_name("frame") {
        let frames = bytes(&columns[at])?;
        let is_hidden = |row: usize| {
            let is_whole = dids.is_valid(row) && frames.is_valid(row);
            is_whole && hidden.hides_frame(dids.value(row), frames.value(row))
        };
        let is_hidden: BooleanArray =
            (0..batch.num_rows()).map(|row| Some(is_hidden(row))).collect();
        columns[at] = nullif(&columns[at], &is_hidden)?;
    }
    let batch = RecordBatch::try_new(batch.schema(), columns)?;
    Ok(filter_record_batch(&batch, &shown)?)
}

/// Whether a condition can be evaluated on hidden rows: it compares columns with values and has no cast, no function and nothing
/// else that may fail.
pub(crate) fn is_plain(condition: &Expr) -> bool {
    let is_operand = |expr: &Expr| matches!(expr, Expr::Column(_) | Expr::Literal(..));
    match condition {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => match op {
            Operator::And | Operator::Or => is_plain(left) && is_plain(right),
            Operator::Eq
            | Operator::NotEq
            | Operator::Lt
            | Operator::LtEq
            | Operator::Gt
            | Operator::GtEq => is_operand(left) && is_operand(right),
            _ => false,
        },
        Expr::InList(list) => is_operand(&list.expr) && list.list.iter().all(is_operand),
        Expr::IsNull(of) | Expr::IsNotNull(of) => is_operand(of),
        _ => false,
    }
}

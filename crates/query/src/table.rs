//! A table of an archive as its files, for the engine's Parquet reader.

use std::fmt;
use std::sync::Arc;

use archive::{Archive, HideList, StoredFile, Table};
use async_trait::async_trait;
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::catalog::Session;
use datafusion::common::stats::Precision;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{ColumnStatistics, DFSchema, Result, ScalarValue, Statistics};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfigBuilder, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::datasource::{TableProvider, TableType};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::logical_expr::utils::conjunction;
use datafusion::logical_expr::{Expr, TableProviderFilterPushDown};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::empty::EmptyExec;

use crate::error::QueryError;
use crate::hidden;

/// The files of a table as of when the session was opened.
pub(crate) struct StoredTable {
    table: Table,
    url: ObjectStoreUrl,
    schema: TableSchema,
    files: Vec<StoredFile>,
    hidden: Arc<HideList>,
}

impl StoredTable {
    /// The rows that `hidden` leaves.
    pub(crate) async fn new(
        archive: &Archive,
        table: Table,
        url: ObjectStoreUrl,
        hidden: Arc<HideList>,
    ) -> Result<Self, QueryError> {
        let files = archive.stored_files(table).await?;
        let day = Arc::new(Field::new("day", DataType::Utf8, true));
        let schema = TableSchema::builder(with_views(&table.schema()))
            .with_table_partition_cols(vec![day])
            .build();
        Ok(Self { table, url, schema, files, hidden })
    }

    /// The columns that say whether a row is shown, if rows are hidden.
    fn place_columns(&self) -> Option<&'static [&'static str]> {
        hidden::place_columns(self.table).filter(|_| !self.hidden.is_empty())
    }

    /// A plan that reads these columns of the files.
    fn files_plan(
        &self,
        state: &dyn Session,
        projection: Option<Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        if self.files.is_empty() {
            // A plan without partitions cannot be sorted or grouped.
            let schema = match &projection {
                Some(columns) => Arc::new(self.schema().project(columns)?),
                None => self.schema(),
            };
            return Ok(Arc::new(EmptyExec::new(schema)));
        }
        let mut source = ParquetSource::new(self.schema.clone())
            .with_table_parquet_options(state.default_table_options().parquet);
        if let Some(filter) =
            conjunction(filters.iter().map(unqualified).collect::<Result<Vec<_>>>()?)
        {
            let schema = DFSchema::try_from(self.schema())?;
            source = ParquetSource::with_predicate(
                &source,
                state.create_physical_expr(filter, &schema)?,
            );
        }
        let jobs = state.config().target_partitions();
        let group = FileGroup::new(self.files.iter().map(|stored| self.file(stored)).collect());
        let config = FileScanConfigBuilder::new(self.url.clone(), Arc::new(source))
            .with_file_groups(group.split_files(jobs))
            .with_projection_indices(projection)?
            .with_limit(limit)
            .build();
        Ok(DataSourceExec::from_data_source(config))
    }

    /// A file, with the day and the accounts of its rows: files without a row of an answer are not opened.
    fn file(&self, stored: &StoredFile) -> PartitionedFile {
        let file_schema = self.schema.file_schema();
        let mut statistics = Statistics::new_unknown(file_schema);
        statistics.num_rows = exact(usize::try_from(stored.rows).ok());
        if let (Some(dids), Ok(index)) = (&stored.dids, file_schema.index_of("did")) {
            let bound = |did: &str| exact(Some(ScalarValue::Utf8View(Some(did.to_owned()))));
            statistics.column_statistics[index] = ColumnStatistics {
                min_value: bound(dids.start()),
                max_value: bound(dids.end()),
                ..ColumnStatistics::new_unknown()
            };
        }
        PartitionedFile::new(stored.path.to_string(), stored.bytes)
            .with_partition_values(vec![ScalarValue::Utf8(stored.day.clone())])
            .with_statistics(Arc::new(statistics))
    }
}

/// A value that the log states.
fn exact<T: fmt::Debug + Clone + PartialEq + Eq + PartialOrd>(value: Option<T>) -> Precision<T> {
    value.map_or(Precision::Absent, Precision::Exact)
}

/// Texts and bytes as views: the reader then copies no values.
fn with_views(schema: &Schema) -> SchemaRef {
    let fields = schema.fields().iter().map(|field| {
        let data_type = match field.data_type() {
            DataType::Utf8 => DataType::Utf8View,
            DataType::Binary => DataType::BinaryView,
            other => other.clone(),
        };
        Field::new(field.name(), data_type, field.is_nullable())
    });
    Arc::new(Schema::new(fields.collect::<Vec<_>>()))
}

#[async_trait]
impl TableProvider for StoredTable {
    fn schema(&self) -> SchemaRef {
        self.schema.table_schema().clone()
    }

    fn table_type(&self) -> TableType {
        TableType::Base
    }

    fn supports_filters_pushdown(
        &self,
        filters: &[&Expr],
    ) -> Result<Vec<TableProviderFilterPushDown>> {
        let hides = self.place_columns().is_some();
        let of = |filter: &&Expr| match hides && !hidden::is_plain(filter) {
            // It would be evaluated on hidden rows.
            true => TableProviderFilterPushDown::Unsupported,
            false => TableProviderFilterPushDown::Inexact,
        };
        Ok(filters.iter().map(of).collect())
    }

    async fn scan(
        &self,
        state: &dyn Session,
        projection: Option<&Vec<usize>>,
        filters: &[Expr],
        limit: Option<usize>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let Some(place) = self.place_columns() else {
            return self.files_plan(state, projection.cloned(), filters, limit);
        };
        let schema = self.schema();
        let wanted = projection.cloned().unwrap_or_else(|| (0..schema.fields().len()).collect());
        let mut read = wanted.clone();
        for name in place {
            let index = schema.index_of(name)?;
            if !read.contains(&index) {
                read.push(index);
            }
        }
        let plain: Vec<Expr> =
            filters.iter().filter(|filter| hidden::is_plain(filter)).cloned().collect();
        // A limit counts the rows that are shown.
        let files = self.files_plan(state, Some(read), &plain, None)?;
        hidden::shown(&files, &self.hidden, &(0..wanted.len()).collect(), limit)
    }
}

/// A condition on the columns of a file, without the name of the table.
fn unqualified(filter: &Expr) -> Result<Expr> {
    let renamed = filter.clone().transform(|expr| {
        Ok(match expr {
            Expr::Column(mut column) => {
                column.relation = None;
                Transformed::yes(Expr::Column(column))
            }
            other => Transformed::no(other),
        })
    });
    Ok(renamed?.data)
}

impl fmt::Debug for StoredTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StoredTable").field("table", &self.table).finish_non_exhaustive()
    }
}

//! A session: the tables, functions and views of one archive, and the statements on them.

use std::sync::Arc;

use archive::{Archive, Table};
use datafusion::arrow::array::RecordBatch;
use datafusion::arrow::datatypes::SchemaRef;
use datafusion::datasource::{TableProvider, ViewTable};
use datafusion::execution::SendableRecordBatchStream;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnvBuilder;
use datafusion::prelude::{SQLOptions, SessionConfig, SessionContext};
use futures_util::TryStreamExt;

use crate::error::QueryError;
use crate::functions;
use crate::lexicon::Lexicon;
use crate::proof::Proof;
use crate::records::StoredRecord;
use crate::table::StoredTable;

/// How statements are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// Bytes that sorts, joins and groups may hold; the rest goes to temporary files.
    pub memory_bytes: usize,
    /// Number of threads that read and compute at once.
    pub jobs: usize,
    /// The collections that have a view with columns of their own.
    pub lexicons: Vec<Lexicon>,
}

impl Default for Options {
    fn default() -> Self {
        let jobs = std::thread::available_parallelism().map_or(1, usize::from);
        Self { memory_bytes: 512 << 20, jobs, lexicons: Vec::new() }
    }
}

/// The tables of an archive as of when the session was opened.
pub struct Session {
    context: SessionContext,
}

impl Session {
    /// Opens a session: `events`, `ops`, `snapshots`, `records`, `hidden`, `plc_ops`, `blobs` and `labels` with the columns in
    /// `docs/formats/archive.md` and `day`; the view `current_records`; and a view per lexicon.
    ///
    /// # Errors
    /// If the logs of the archive cannot be read, or two lexicons are of one collection.
    pub async fn open(archive: &Archive, options: &Options) -> Result<Self, QueryError> {
        let runtime = RuntimeEnvBuilder::new()
            .with_memory_limit(options.memory_bytes, 1.0)
            .build_arc()
            .map_err(QueryError::statement)?;
        let mut config = SessionConfig::new()
            .with_target_partitions(options.jobs.max(1))
            .with_information_schema(true);
        let settings = config.options_mut();
        settings.execution.parquet.pushdown_filters = true;
        settings.optimizer.expand_views_at_output = true;
        let context = SessionContext::new_with_config_rt(config, runtime);
        let url = ObjectStoreUrl::parse(STORE).map_err(QueryError::statement)?;
        context.register_object_store(url.as_ref(), archive.storage().objects().clone());
        let session = Self { context };
        functions::register(&session.context);
        session.register_tables(archive, &url).await?;
        session.register_views(options).await?;
        Ok(session)
    }

    async fn register_tables(
        &self,
        archive: &Archive,
        url: &ObjectStoreUrl,
    ) -> Result<(), QueryError> {
        let hidden = Arc::new(archive.hide_list().await?);
        self.context.register_udf(Proof::function(archive));
        let stored_record = StoredRecord::function(archive.frame_records().await?, hidden.clone());
        self.context.register_udf(stored_record);
        for table in Table::ALL {
            let stored: Arc<dyn TableProvider> =
                Arc::new(StoredTable::new(archive, table, url.clone(), hidden.clone()).await?);
            self.register(&format!("stored_{}", table.name()), stored)?;
            self.register_view(table.name(), &view_of(table)).await?;
        }
        for table in Table::ALL {
            self.context
                .deregister_table(format!("stored_{}", table.name()))
                .map_err(QueryError::statement)?;
        }
        // The plan of the view has it. A statement could ask it for any place.
        self.context.deregister_udf(StoredRecord::NAME);
        Ok(())
    }

    async fn register_views(&self, options: &Options) -> Result<(), QueryError> {
        self.register_view("current_records", CURRENT_RECORDS).await?;
        for lexicon in &options.lexicons {
            if self.context.table_exist(lexicon.view()).map_err(QueryError::statement)? {
                let message = format!("there are two tables {}", lexicon.view());
                return Err(QueryError::Statement(message));
            }
            self.register_view(lexicon.view(), &lexicon.to_sql()).await?;
        }
        Ok(())
    }

    async fn register_view(&self, name: &str, sql: &str) -> Result<(), QueryError> {
        let plan = self.context.sql(sql).await.map_err(QueryError::statement)?;
        let plan = plan.into_unoptimized_plan();
        self.register(name, Arc::new(ViewTable::new(plan, Some(sql.to_owned()))))
    }

    fn register(&self, name: &str, table: Arc<dyn TableProvider>) -> Result<(), QueryError> {
        self.context.register_table(name, table).map_err(QueryError::statement)?;
        Ok(())
    }

    /// Runs a statement that reads: a query, `EXPLAIN`, or `SHOW`.
    ///
    /// # Errors
    /// If it is not SQL, names something that is not there, or would write.
    pub async fn sql(&self, statement: &str) -> Result<Rows, QueryError> {
        let reads = SQLOptions::new()
            .with_allow_ddl(false)
            .with_allow_dml(false)
            .with_allow_statements(false);
        let frame = self.context.sql_with_options(statement, reads).await;
        let frame = frame.map_err(QueryError::statement)?;
        let stream = frame.execute_stream().await.map_err(QueryError::statement)?;
        Ok(Rows { stream })
    }
}

/// The statement of the columns of a table.
fn view_of(table: Table) -> String {
    let schema = table.schema();
    let names = schema.fields().iter().map(|field| match (table, &**field.name()) {
        (Table::Ops, "record") => STORED_RECORD.to_owned(),
        (_, name) => format!("\"{name}\""),
    });
    let columns: Vec<String> = names.chain(["day".to_owned()]).collect();
    format!("SELECT {} FROM stored_{}", columns.join(", "), table.name())
}

/// The rows of an answer.
pub struct Rows {
    stream: SendableRecordBatchStream,
}

impl Rows {
    /// The columns.
    pub fn schema(&self) -> SchemaRef {
        self.stream.schema()
    }

    /// The next rows; `None` at the end.
    ///
    /// # Errors
    /// If the archive cannot be read, or the answer needs more memory or temporary files than it may have.
    pub async fn next(&mut self) -> Result<Option<RecordBatch>, QueryError> {
        self.stream.try_next().await.map_err(QueryError::execution)
    }
}

/// The address under which the files of the archive are known to the engine.
const STORE: &str = "archive://local";

/// The record of an operation, from the frame where it is not stored apart.
const STORED_RECORD: &str =
    "stored_record(record, cid, action, did, arrival, collection, rkey) AS record";

/// The newest stored versions of records: the records of the accounts' last repositories and of later parts, and the changes by later
/// commits. A part replaces all older versions in its collections: a record that it lacks was deleted.
const CURRENT_RECORDS: &str = "
WITH heads AS (SELECT did, max(rev) AS rev FROM snapshots GROUP BY did),
versions AS (
    SELECT r.did, r.collection, r.rkey, r.rev, CAST(0 AS BIGINT) AS arrival, CAST(0 AS SMALLINT) AS idx,
           'create' AS action, r.record
    FROM records r JOIN heads h ON r.did = h.did AND r.rev = h.rev
    UNION ALL
    SELECT p.did, p.collection, p.rkey, p.rev, CAST(0 AS BIGINT) AS arrival, CAST(0 AS SMALLINT) AS idx,
           'create' AS action, p.record
    FROM part_records p LEFT JOIN heads h ON p.did = h.did
    WHERE h.rev IS NULL OR p.rev > h.rev
    UNION ALL
    SELECT o.did, o.collection, o.rkey, e.rev, o.arrival, o.idx, o.action, o.record
    FROM ops o
    JOIN events e ON o.did = e.did AND o.arrival = e.arrival
    LEFT JOIN heads h ON o.did = h.did
    WHERE h.rev IS NULL OR e.rev > h.rev
),
numbered AS (
    SELECT *, row_number() OVER (PARTITION BY did, collection, rkey ORDER BY rev DESC, arrival DESC, idx DESC) AS version
    FROM versions v
    WHERE NOT EXISTS (
        SELECT 1 FROM parts p WHERE p.did = v.did AND p.rev > v.rev AND covers(p.collections, v.collection)
    )
)
SELECT did, collection, rkey, rev, record FROM numbered WHERE version = 1 AND action <> 'delete'";

//! Errors of queries.

use archive::ArchiveError;
use datafusion::error::DataFusionError;

/// Why a query has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum QueryError {
    /// The statement is not SQL, names something that is not there, or would write.
    #[error("{0}")]
    Statement(String),
    /// The archive cannot be read, or the answer does not fit in the memory and the temporary files that are allowed.
    #[error("{0}")]
    Execution(String),
    /// The archive cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
}

impl QueryError {
    pub(crate) fn statement(error: DataFusionError) -> Self {
        Self::Statement(message(error))
    }

    /// An error while rows are computed.
    pub(crate) fn execution(error: DataFusionError) -> Self {
        let error = message(error);
        let is_gone = error.contains("not found") || error.contains("No such file");
        let fix =
            if is_gone { ": the file was replaced meanwhile; run the query again" } else { "" };
        Self::Execution(format!("{error}{fix}"))
    }
}

fn message(error: DataFusionError) -> String {
    match error {
        DataFusionError::Diagnostic(_, inner) | DataFusionError::Context(_, inner) => {
            message(*inner)
        }
        error => error.strip_backtrace(),
    }
}

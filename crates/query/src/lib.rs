//! SQL over archives: the tables of an archive as Apache DataFusion reads them, without hidden rows, with the records of
//! stored frames, with functions that engines lack, and with views that have the columns of a lexicon.
//!
//! ```
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let folder = tempfile::tempdir()?;
//! # let address = folder.path().to_str().ok_or("a path")?;
//! use wireproof::archive::Archive;
//! use wireproof::query::{Options, Session};
//!
//! let archive = Archive::open(address)?;
//! let session = Session::open(&archive, &Options::default()).await?;
//! let mut rows = session.sql("SELECT collection, count(*) FROM ops GROUP BY collection").await?;
//! while let Some(batch) = rows.next().await? {
//!     println!("{} rows", batch.num_rows());
//! }
//! # Ok(())
//! # }
//! ```
//!
//! A session reads the files that the archive had when it was opened. Nothing that a statement says writes: not to the archive,
//! and not to a file.

#![forbid(unsafe_code)]

mod error;
mod functions;
mod hidden;
mod lexicon;
mod proof;
mod records;
mod session;
mod table;

pub use error::QueryError;
pub use lexicon::{Lexicon, LexiconError};
pub use session::{Options, Rows, Session};

/// The columns and rows of Apache Arrow, and the writers of its formats.
pub use datafusion::arrow;
/// The writer of Parquet files.
pub use datafusion::parquet;

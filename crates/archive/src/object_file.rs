//! A file of a table, for the Parquet reader.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use futures_util::{FutureExt, TryFutureExt};
use object_store::path::Path;
use object_store::{GetOptions, GetRange, ObjectStore, ObjectStoreExt};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::{AsyncFileReader, MetadataSuffixFetch};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ParquetMetaData, ParquetMetaDataReader};

/// Reads ranges of an object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectFile {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
}

impl AsyncFileReader for ObjectFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes>> {
        self.objects.get_range(&self.path, range).map_err(failed).boxed()
    }

    fn get_byte_ranges(&mut self, ranges: Vec<Range<u64>>) -> BoxFuture<'_, Result<Vec<Bytes>>> {
        async move { self.objects.get_ranges(&self.path, &ranges).await.map_err(failed) }.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>>> {
        let reader = ParquetMetaDataReader::new().with_arrow_reader_options(options);
        reader.load_via_suffix_and_finish(self).map_ok(Arc::new).boxed()
    }
}

impl MetadataSuffixFetch for &mut ObjectFile {
    fn fetch_suffix(&mut self, suffix: usize) -> BoxFuture<'_, Result<Bytes>> {
        let options =
            GetOptions { range: Some(GetRange::Suffix(suffix as u64)), ..GetOptions::default() };
        async move {
            let object = self.objects.get_opts(&self.path, options).await.map_err(failed)?;
            object.bytes().await.map_err(failed)
        }
        .boxed()
    }
}

fn failed(error: object_store::Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

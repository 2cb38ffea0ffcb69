//! A file of a table, for the Parquet reader: fetched bytes are checked before they are decoded.

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, OBJECT_STORE_COALESCE_DEFAULT, ObjectStore, ObjectStoreExt,
    coalesce_ranges,
};
use parquet::arrow::arrow_reader::ArrowReaderOptions;
use parquet::arrow::async_reader::{AsyncFileReader, MetadataSuffixFetch};
use parquet::errors::ParquetError;
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData, ParquetMetaDataReader};

use crate::decode_limits::{self, DecodeLimit};

/// Reads ranges of an object.
#[derive(Clone, Debug)]
pub(crate) struct ObjectFile {
    pub(crate) objects: Arc<dyn ObjectStore>,
    pub(crate) path: Path,
    /// The end of the file, once it is read: pages are compared with its statements.
    pub(crate) metadata: Option<Arc<ParquetMetaData>>,
    /// Size of the file, once its end is read.
    size: u64,
}

impl AsyncFileReader for ObjectFile {
    fn get_bytes(&mut self, range: Range<u64>) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        let bytes = async move {
            let bytes = self.objects.get_range(&self.path, range.clone()).await;
            let bytes = bytes.and_then(|bytes| whole_range(&range, bytes)).map_err(failed)?;
            self.check_pages(range.start, &bytes)?;
            Ok(bytes)
        };
        bytes.boxed()
    }

    fn get_byte_ranges(
        &mut self,
        ranges: Vec<Range<u64>>,
    ) -> BoxFuture<'_, Result<Vec<Bytes>, ParquetError>> {
        let bytes = async move {
            let (objects, path) = (&self.objects, &self.path);
            let fetch = |range: Range<u64>| async move {
                whole_range(&range, objects.get_range(path, range.clone()).await?)
            };
            let fetched = coalesce_ranges(&ranges, fetch, OBJECT_STORE_COALESCE_DEFAULT).await;
            let fetched = fetched.map_err(failed)?;
            for (range, bytes) in ranges.iter().zip(&fetched) {
                self.check_pages(range.start, bytes)?;
            }
            Ok(fetched)
        };
        bytes.boxed()
    }

    fn get_metadata<'a>(
        &'a mut self,
        options: Option<&'a ArrowReaderOptions>,
    ) -> BoxFuture<'a, Result<Arc<ParquetMetaData>, ParquetError>> {
        let reader = ParquetMetaDataReader::new().with_arrow_reader_options(options);
        async move {
            let metadata = Arc::new(reader.load_via_suffix_and_finish(&mut *self).await?);
            decode_limits::check_file(&metadata, self.size).map_err(over_limit)?;
            self.metadata = Some(metadata.clone());
            Ok(metadata)
        }
        .boxed()
    }
}

impl MetadataSuffixFetch for &mut ObjectFile {
    fn fetch_suffix(&mut self, suffix: usize) -> BoxFuture<'_, Result<Bytes, ParquetError>> {
        async move {
            let (bytes, size) = self.end(suffix as u64).await.map_err(failed)?;
            self.size = size;
            Ok(bytes)
        }
        .boxed()
    }
}

impl ObjectFile {
    pub(crate) fn new(objects: Arc<dyn ObjectStore>, path: Path) -> Self {
        Self { objects, path, metadata: None, size: 0 }
    }

    /// The file, whose end was read before.
    pub(crate) fn with_metadata(self, metadata: &Arc<ParquetMetaData>) -> Self {
        Self { metadata: Some(metadata.clone()), ..self }
    }

    /// Checks the pages at a place, if it is one of a column.
    fn check_pages(&self, start: u64, bytes: &[u8]) -> Result<(), ParquetError> {
        let groups = self.metadata.iter().flat_map(|metadata| metadata.row_groups());
        let is_in = |column: &&ColumnChunkMetaData| {
            let (first, len) = column.byte_range();
            (first..first.saturating_add(len)).contains(&start)
        };
        match groups.flat_map(|group| group.columns()).find(is_in) {
            Some(column) => decode_limits::check_pages(column, bytes).map_err(over_limit),
            None => Ok(()),
        }
    }

    /// The last bytes, and the size of the file.
    async fn end(&self, len: u64) -> Result<(Bytes, u64), Error> {
        let options = GetOptions { range: Some(GetRange::Suffix(len)), ..GetOptions::default() };
        match self.objects.get_opts(&self.path, options).await {
            // Azure has no ranges from the end.
            Err(Error::NotSupported { .. }) => {
                let size = self.objects.head(&self.path).await?.size;
                let range = size.saturating_sub(len)..size;
                let bytes = self.objects.get_range(&self.path, range.clone()).await?;
                Ok((whole_range(&range, bytes)?, size))
            }
            object => {
                let object = object?;
                let size = object.meta.size;
                Ok((object.bytes().await?, size))
            }
        }
    }
}

/// Checks that a range has all its bytes: readers take parts of it by their places.
pub(crate) fn whole_range(range: &Range<u64>, bytes: Bytes) -> Result<Bytes, Error> {
    if bytes.len() as u64 == range.end - range.start {
        Ok(bytes)
    } else {
        Err(Error::Generic {
            store: "range",
            source: format!("{} bytes instead of {range:?}", bytes.len()).into(),
        })
    }
}

fn over_limit(limit: DecodeLimit) -> ParquetError {
    ParquetError::External(Box::new(limit))
}

fn failed(error: Error) -> ParquetError {
    ParquetError::External(Box::new(error))
}

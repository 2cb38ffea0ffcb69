//! Whole repositories, proved.

use std::num::NonZeroUsize;
use std::sync::{Arc, OnceLock};

use codec::Cid;
use crypto::PublicKey;
use pyo3::exceptions::{PyImportError, PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyTuple};
use self_cell::self_cell;
use verify::Verified;
use verify::repository::{self, Options, WholeRepository};

use crate::arguments::value;
use crate::errors;
use crate::keys::KeyArguments;
use crate::record::{Record, split};
use crate::record_batches::RecordBatchStream;
use crate::record_columns::{RecordRow, RecordSelection, record_batches};
use crate::resolve::Identity;
use crate::source::Source;

self_cell!(
    /// A proved repository with the bytes that it was read from.
    struct Proved {
        owner: Source,
        #[covariant]
        dependent: Whole,
    }
);

type Whole<'a> = Verified<WholeRepository<'a>>;

/// A repository that was proved to be whole and signed.
#[pyclass(frozen, module = "wireproof")]
pub(crate) struct Repo {
    proved: Proved,
    key: PublicKey,
    did: Arc<str>,
    /// The account, if it was resolved.
    identity: Option<Py<Identity>>,
    /// The records in the order of their paths, once they are asked for.
    places: OnceLock<Vec<Place>>,
}

/// A record in the archive.
struct Place {
    path: Box<str>,
    cid: Cid,
    /// Offset of its bytes in the archive, and their number.
    at: usize,
    len: usize,
}

/// Prove a repository from its CAR archive, as `getRepo` gives it: every hash, the signature, the whole tree, every record.
///
/// Args:
///     car: the archive as `bytes`, or the path of a file (`str` or `os.PathLike`), which is mapped and must not change.
///     key: the signing key of the account as `did:key`. Exactly one of `key`, `doc` and `plc_log` is given.
///     doc: the account's DID document, as JSON or as what `json.loads` gives.
///     plc_log: the account's did:plc audit log, as JSON or as what `json.loads` gives, which is proved first.
///     did: the expected account; by default the account of `doc` or `plc_log`, else any.
///     strict_records: refuse a record that is signed and not valid, instead of counting it in `invalid_records`.
///     threads: number of threads that hash a large archive.
///
/// Returns:
///     The proved repository. Other Python threads run meanwhile.
///
/// Raises:
///     CarError: the archive is malformed, or a block has another hash.
///     Rejection: the signature, the tree or the account is another than expected.
///     TypeError, ValueError: an argument is of a wrong type or cannot be read.
///     OSError: the file cannot be read.
///
/// ```python
/// repo = wireproof.verify_repo(pathlib.Path("alice.car"), doc=document)
/// for record in repo.records("app.bsky.feed.post"):
///     print(record.uri, record.value["text"])
/// ```
#[pyfunction]
#[pyo3(signature = (car, key = None, *, doc = None, plc_log = None, did = None, strict_records = false, threads = 1))]
#[expect(clippy::too_many_arguments, reason = "the arguments of the function in Python")]
pub(crate) fn verify_repo(
    py: Python<'_>,
    car: &Bound<'_, PyAny>,
    key: Option<&str>,
    doc: Option<&Bound<'_, PyAny>>,
    plc_log: Option<&Bound<'_, PyAny>>,
    did: Option<&str>,
    strict_records: bool,
    threads: usize,
) -> PyResult<Repo> {
    let (key, of_key) = KeyArguments { key, doc, plc_log }.resolve(did)?;
    let expected = did.or(of_key.as_deref());
    let source = Source::of(car, "car")?;
    let mut options = Options::default();
    options.threads = at_least_one(threads)?;
    options.strict_records = strict_records;
    Repo::prove(py, source, expected, key, &options, None)
}

/// Makes a repository of its pickled parts.
#[pyfunction]
pub(crate) fn _restore_repo(
    py: Python<'_>,
    car: &Bound<'_, PyAny>,
    key: &str,
    identity: Py<Identity>,
) -> PyResult<Repo> {
    let (key, _) = KeyArguments { key: Some(key), doc: None, plc_log: None }.resolve(None)?;
    let did = identity.get().did().to_owned();
    let source = Source::of(car, "car")?;
    Repo::prove(py, source, Some(&did), key, &Options::default(), Some(identity))
}

fn at_least_one(threads: usize) -> PyResult<NonZeroUsize> {
    let none = || PyValueError::new_err("threads: at least 1 is expected");
    NonZeroUsize::new(threads).ok_or_else(none)
}

impl Place {
    fn block<'a>(&self, archive: &'a [u8]) -> &'a [u8] {
        &archive[self.at..][..self.len]
    }
}

impl Repo {
    /// Proves an archive, while other Python threads run.
    pub(crate) fn prove(
        py: Python<'_>,
        source: Source,
        did: Option<&str>,
        key: PublicKey,
        options: &Options,
        identity: Option<Py<Identity>>,
    ) -> PyResult<Self> {
        let verify = || Proved::try_new(source, |car| repository::verify(car, did, &key, options));
        let proved = py.detach(verify).map_err(|why| errors::of_repository(py, &why))?;
        let did = proved.borrow_dependent().commit().did.into();
        Ok(Self { proved, key, did, identity, places: OnceLock::new() })
    }

    fn whole(&self) -> &Whole<'_> {
        self.proved.borrow_dependent()
    }

    /// The records, which are found at the first call.
    fn places(&self, py: Python<'_>) -> PyResult<&[Place]> {
        if let Some(places) = self.places.get() {
            return Ok(places);
        }
        let found = py.detach(|| self.find_records());
        // The walk was proved before, and its bytes do not change.
        let found = found.map_err(|error| PyRuntimeError::new_err(error.to_string()))?;
        Ok(self.places.get_or_init(|| found))
    }

    fn find_records(&self) -> Result<Vec<Place>, atproto::repo::RepoError> {
        let whole = self.whole();
        let place = |record: atproto::repo::Record<'_>| Place {
            at: whole.archive().offset_of(record.block) as usize,
            len: record.block.len(),
            path: record.path.into(),
            cid: record.cid,
        };
        whole.records().map(|record| record.map(place)).collect()
    }

    fn record(&self, py: Python<'_>, place: &Place) -> Record {
        let block = place.block(self.proved.borrow_owner());
        Record {
            did: self.did.clone(),
            path: place.path.clone(),
            cid: place.cid,
            block: PyBytes::new(py, block).unbind(),
        }
    }

    fn count(&self) -> usize {
        usize::try_from(self.whole().tree().records).unwrap_or(usize::MAX)
    }
}

#[pymethods]
impl Repo {
    /// The records as columns, in the order of their paths: an object with `__arrow_c_stream__`.
    ///
    /// Args:
    ///     columns: names of columns, in the order of the stream. Default: all. Without `json` it takes a fraction of the time.
    ///     threads: number of threads that make them.
    ///
    /// Returns:
    ///     A stream of batches of up to 16,384 records, with the columns `collection`, `rkey`, `cid` (text), `record` (large
    ///     binary, DAG-CBOR) and `json` (large text; null for a record that has no JSON form). It can be read again.
    ///
    /// Raises:
    ///     ValueError: if there is no such column, or `threads` is 0.
    ///
    /// ```python
    /// posts = polars.DataFrame(wireproof.verify_repo(car, key).to_arrow())
    /// ```
    #[pyo3(signature = (columns = None, *, threads = 1))]
    fn to_arrow(
        &self,
        py: Python<'_>,
        columns: Option<&Bound<'_, PyAny>>,
        threads: usize,
    ) -> PyResult<RecordBatchStream> {
        let columns = columns.map(|columns| value("columns", "a sequence of str", columns));
        let columns: Option<Vec<String>> = columns.transpose()?;
        let selection = RecordSelection::new(columns.as_deref())?;
        let (places, threads) = (self.places(py)?, at_least_one(threads)?);
        let archive = &**self.proved.borrow_owner();
        let row = |number: usize| {
            let place = &places[number];
            let (path, cid) = (&*place.path, place.cid.as_cid_ref());
            RecordRow { path, cid, block: place.block(archive) }
        };
        let batches = py.detach(|| record_batches(places.len(), row, &selection, threads))?;
        Ok(RecordBatchStream::stored(selection.schema(), batches))
    }

    /// The account.
    #[getter]
    fn did(&self) -> &str {
        &self.did
    }

    /// The revision.
    #[getter]
    fn rev(&self) -> &str {
        self.whole().commit().rev
    }

    /// The CID of the signed commit as text.
    #[getter]
    fn root(&self) -> String {
        self.whole().root().to_string()
    }

    /// The key that signed it, as `did:key`.
    #[getter]
    fn key(&self) -> String {
        self.key.to_did_key()
    }

    /// The account, as its DID document describes it: of a repository of `verify_account`, otherwise None.
    #[getter]
    fn identity(&self, py: Python<'_>) -> Option<Py<Identity>> {
        self.identity.as_ref().map(|identity| identity.clone_ref(py))
    }

    /// The number of records that are signed and not valid.
    #[getter]
    fn invalid_records(&self) -> u64 {
        self.whole().invalid_records().records
    }

    /// The number of records.
    fn __len__(&self) -> usize {
        self.count()
    }

    /// The records in the order of their paths.
    ///
    /// Args:
    ///     collection: only records of this collection, such as `app.bsky.feed.post`. Default: all.
    ///     progress: show a bar of `tqdm`, where that is installed.
    ///
    /// Returns:
    ///     An iterator of `Record`.
    #[pyo3(signature = (collection = None, *, progress = false))]
    fn records<'py>(
        slf: &Bound<'py, Self>,
        collection: Option<&str>,
        progress: bool,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, repo) = (slf.py(), slf.get());
        let places = repo.places(py)?;
        let range = match collection {
            None => 0..places.len(),
            Some(name) => {
                let prefix = format!("{name}/");
                let from = places.partition_point(|place| *place.path < *prefix);
                let is_in = |place: &&Place| place.path.starts_with(&prefix);
                from..from + places[from..].iter().take_while(is_in).count()
            }
        };
        let count = range.len();
        let records =
            RecordIterator { repo: slf.clone().unbind(), next: range.start, end: range.end };
        let records = Bound::new(py, records)?.into_any();
        if progress { with_progress(&records, count, &repo.did) } else { Ok(records) }
    }

    fn __iter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        Self::records(slf, None, false)
    }

    /// The record at a path.
    fn __getitem__(&self, py: Python<'_>, path: &str) -> PyResult<Record> {
        self.get(py, path)?.ok_or_else(|| PyKeyError::new_err(path.to_owned()))
    }

    fn __contains__(&self, py: Python<'_>, path: &str) -> PyResult<bool> {
        Ok(self.places(py)?.binary_search_by(|place| (*place.path).cmp(path)).is_ok())
    }

    /// The record at a path; None if there is none.
    ///
    /// Args:
    ///     path: its collection and record key with a slash between.
    fn get(&self, py: Python<'_>, path: &str) -> PyResult<Option<Record>> {
        let places = self.places(py)?;
        let found = places.binary_search_by(|place| (*place.path).cmp(path)).ok();
        Ok(found.map(|at| self.record(py, &places[at])))
    }

    /// The number of records of every collection, by its name, in the order of the names.
    fn collections<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let counts = PyDict::new(py);
        for (name, count) in self.collection_counts(py)? {
            counts.set_item(name, count)?;
        }
        Ok(counts)
    }

    fn __repr__(&self) -> String {
        format!("Repo(did={:?}, rev={:?}, records={})", &*self.did, self.rev(), self.count())
    }

    /// A table of the collections for notebooks.
    fn _repr_html_(&self, py: Python<'_>) -> PyResult<String> {
        let mut html = format!(
            "<table><caption>{}, revision {}, proved</caption><tr><th>collection</th><th>records</th></tr>",
            escaped(&self.did),
            escaped(self.rev())
        );
        let mut counts = self.collection_counts(py)?;
        counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let others: usize = counts.iter().skip(MAX_ROWS).map(|(_, count)| count).sum();
        for (name, count) in counts.into_iter().take(MAX_ROWS) {
            html += &format!("<tr><td>{}</td><td>{count}</td></tr>", escaped(name));
        }
        if others > 0 {
            html += &format!("<tr><td>others</td><td>{others}</td></tr>");
        }
        html += &format!("<tr><th>all</th><th>{}</th></tr></table>", self.count());
        Ok(html)
    }

    fn __reduce__<'py>(
        &self,
        py: Python<'py>,
    ) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let car = PyBytes::new(py, self.proved.borrow_owner());
        let key = self.key.to_did_key();
        let module = py.import("wireproof._wireproof")?;
        match self.identity(py) {
            None => Ok((module.getattr("verify_repo")?, (car, key).into_pyobject(py)?)),
            Some(of) => Ok((module.getattr("_restore_repo")?, (car, key, of).into_pyobject(py)?)),
        }
    }
}

impl Repo {
    /// The collections in the order of their names.
    fn collection_counts(&self, py: Python<'_>) -> PyResult<Vec<(&str, usize)>> {
        let places = self.places(py)?;
        let groups = places.chunk_by(|a, b| split(&a.path).0 == split(&b.path).0);
        Ok(groups.map(|group| (split(&group[0].path).0, group.len())).collect())
    }
}

/// Iterates over records.
#[pyclass(module = "wireproof")]
struct RecordIterator {
    repo: Py<Repo>,
    next: usize,
    end: usize,
}

#[pymethods]
impl RecordIterator {
    fn __iter__(slf: PyRef<'_, Self>) -> PyRef<'_, Self> {
        slf
    }

    fn __next__(&mut self, py: Python<'_>) -> PyResult<Option<Record>> {
        if self.next == self.end {
            return Ok(None);
        }
        let repo = self.repo.get();
        let record = repo.record(py, &repo.places(py)?[self.next]);
        self.next += 1;
        Ok(Some(record))
    }

    fn __length_hint__(&self) -> usize {
        self.end - self.next
    }
}

/// The iterator with a bar of `tqdm`, where that is installed.
fn with_progress<'py>(
    records: &Bound<'py, PyAny>,
    count: usize,
    did: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let py = records.py();
    let bar = match py.import("tqdm.auto") {
        Ok(tqdm) => tqdm.getattr("tqdm")?,
        Err(error) if error.is_instance_of::<PyImportError>(py) => return Ok(records.clone()),
        Err(error) => return Err(error),
    };
    let options = PyDict::new(py);
    options.set_item("total", count)?;
    options.set_item("desc", did)?;
    options.set_item("unit", " records")?;
    bar.call((records,), Some(&options))?.try_iter().map(Bound::into_any)
}

/// Text in HTML.
fn escaped(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => html += "&amp;",
            '<' => html += "&lt;",
            '>' => html += "&gt;",
            '"' => html += "&quot;",
            '\'' => html += "&#39;",
            _ => html.push(letter),
        }
    }
    html
}

/// Rows of the table for notebooks.
const MAX_ROWS: usize = 20;

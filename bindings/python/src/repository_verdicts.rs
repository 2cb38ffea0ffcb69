//! Verification of repositories in record batches: one row in per archive, one row out with its
//! verdict.

use std::collections::HashSet;
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field};
use atproto::commit;
use codec::car;
use crypto::PublicKey;
use pyo3::prelude::*;
use verify::repository::{self, RepositoryRejection, WholeRepository};

use crate::account_keys::{AccountKeys, FoundKeys};
use crate::columns::{BytesColumn, KeptColumns, Pieces, TextColumn};
use crate::record_batches::{RecordBatchStream, STREAM, read_batches};
use crate::record_columns::append_cid;

/// Verify a stream of repositories.
#[pyfunction]
pub(crate) fn verify_repos(
    stream: &Bound<'_, PyAny>,
    keys: &Bound<'_, PyAny>,
    batched_keys: bool,
    keep: Vec<String>,
) -> PyResult<RecordBatchStream> {
    let keys = AccountKeys::new(keys, batched_keys)?;
    let reader = read_batches(STREAM, stream)?;
    let input = reader.schema();
    let car = BytesColumn::index(STREAM, &input, "car")?;
    let did = TextColumn::index(STREAM, &input, "did")?;
    let kept = KeptColumns::new(&input, &keep, repository_fields())?;
    let schema = kept.schema.clone();
    let pieces = Pieces::new(STREAM, reader, car);
    let repositories = RepositoryVerdicts { pieces, car, did, kept, keys };
    Ok(RecordBatchStream::once(schema, Box::new(repositories)))
}

/// Repositories that are verified when their verdicts are asked for.
struct RepositoryVerdicts {
    pieces: Pieces,
    car: usize,
    did: Option<usize>,
    kept: KeptColumns,
    keys: AccountKeys,
}

impl Iterator for RepositoryVerdicts {
    type Item = PyResult<RecordBatch>;

    fn next(&mut self) -> Option<PyResult<RecordBatch>> {
        let piece = self.pieces.next()?;
        Some(piece.and_then(|piece| self.verify(&piece)))
    }
}

impl RepositoryVerdicts {
    fn verify(&mut self, piece: &RecordBatch) -> PyResult<RecordBatch> {
        let cars = BytesColumn::new(piece.column(self.car));
        let stated = self.did.map(|index| TextColumn::new(piece.column(index)));
        let stated = |row| stated.as_ref().and_then(|dids| dids.get(row));
        let claimed = |row| cars.get(row).and_then(claimed_account);
        let accounts: Vec<Option<&str>> =
            (0..piece.num_rows()).map(|row| stated(row).or_else(|| claimed(row))).collect();
        let mut seen = HashSet::new();
        let wanted = accounts.iter().flatten().copied().filter(|did| seen.insert(*did));
        let wanted: Vec<&str> = wanted.collect();
        let keys = Python::attach(|py| self.keys.find(py, wanted))?;
        let mut rows = RepositoryRows::default();
        for (row, account) in accounts.into_iter().enumerate() {
            match cars.get(row) {
                Some(car) => rows.push_verified(car, account, &keys),
                None => rows.push_null(account),
            }
        }
        self.kept.batch(piece, rows.finish())
    }
}

/// The account that a repository says to be of, without a proof.
fn claimed_account(car: &[u8]) -> Option<&str> {
    let mut sections = car::Sections::new(car, &car::Options::default()).ok()?;
    let root = sections.roots().first()?;
    let block = sections.find_map(|block| block.ok().filter(|block| block.cid == root))?;
    commit::Commit::parse(block.data).ok().map(|commit| commit.did)
}

/// Rows of the verdicts of repositories.
#[derive(Default)]
struct RepositoryRows {
    did: StringBuilder,
    rev: StringBuilder,
    verified: BooleanBuilder,
    code: StringBuilder,
    message: StringBuilder,
    records: Int64Builder,
    root: StringBuilder,
}

impl RepositoryRows {
    fn push_verified(&mut self, car: &[u8], account: Option<&str>, keys: &FoundKeys<'_>) {
        let key = account.and_then(|did| keys.get(did));
        let key = key.map(|key| PublicKey::try_from(*key));
        match key {
            Some(Ok(key)) => self.push(account, &verify_repository(car, account, &key)),
            // A fault of the repository itself is of more use than a missing key.
            None => match repository::verify_without_signature(car, &options()) {
                Ok(_) => self.push_refused(account, "signature/no-key", NO_KEY),
                Err(why) => self.push_refused(account, why.code(), &why.to_string()),
            },
            Some(Err(why)) => self.push_refused(account, "signature/wrong", &why.to_string()),
        }
    }

    fn push(
        &mut self,
        account: Option<&str>,
        result: &Result<WholeRepository<'_>, RepositoryRejection>,
    ) {
        let whole = match result {
            Ok(whole) => whole,
            Err(why) => return self.push_refused(account, why.code(), &why.to_string()),
        };
        self.did.append_value(whole.commit().did);
        self.rev.append_value(whole.commit().rev);
        self.verified.append_value(true);
        self.code.append_value("verified");
        self.message.append_null();
        self.records.append_value(i64::try_from(whole.tree().records).unwrap_or(i64::MAX));
        append_cid(&mut self.root, Some(whole.root().as_cid_ref()));
    }

    fn push_null(&mut self, account: Option<&str>) {
        let code = match repository::verify_without_signature(&[], &options()) {
            Ok(_) => "car/truncated",
            Err(why) => why.code(),
        };
        self.push_refused(account, code, "the repository is null");
    }

    fn push_refused(&mut self, account: Option<&str>, code: &str, message: &str) {
        self.did.append_option(account);
        self.rev.append_null();
        self.verified.append_value(false);
        self.code.append_value(code);
        self.message.append_value(message);
        self.records.append_null();
        self.root.append_null();
    }

    fn finish(mut self) -> Vec<ArrayRef> {
        vec![
            Arc::new(self.did.finish()),
            Arc::new(self.rev.finish()),
            Arc::new(self.verified.finish()),
            Arc::new(self.code.finish()),
            Arc::new(self.message.finish()),
            Arc::new(self.records.finish()),
            Arc::new(self.root.finish()),
        ]
    }
}

fn verify_repository<'a>(
    car: &'a [u8],
    account: Option<&str>,
    key: &PublicKey,
) -> Result<WholeRepository<'a>, RepositoryRejection> {
    Ok(repository::verify(car, account, key, &options())?.into_inner())
}

fn options() -> repository::Options {
    repository::Options::default()
}

fn repository_fields() -> Vec<Field> {
    vec![
        Field::new("did", DataType::Utf8, true),
        Field::new("rev", DataType::Utf8, true),
        Field::new("verified", DataType::Boolean, false),
        Field::new("code", DataType::Utf8, false),
        Field::new("message", DataType::Utf8, true),
        Field::new("records", DataType::Int64, true),
        Field::new("root", DataType::Utf8, true),
    ]
}

/// Why a repository without a key is refused.
const NO_KEY: &str = "the account's key is not known";

//! The proof of an archive that is read as it comes: a pipe, standard input, a download.

use std::io::{self, Cursor, Read, Write};
use std::path::Path;

use verify::Verified;
use verify::repository::RepositoryRejection;
use verify::repository::stream::{self, Spill, StreamFailure, StreamOptions, StreamedRepository};

use super::args::VerifyArgs;
use super::report::ProofReport;
use super::signer::{NoKey, Signer};
use super::{no_key, options, report_first};
use crate::failure::Failure;
use crate::files;
use crate::findings::Findings;
use crate::stage::{Stage, StageTimer};

/// Why a stream has no proof.
pub(super) enum StreamProofError {
    Stream(StreamFailure),
    /// There is no key for this account.
    NoKey(String),
}

impl From<StreamFailure> for StreamProofError {
    fn from(failure: StreamFailure) -> Self {
        Self::Stream(failure)
    }
}

/// Verifies the archive that `source`, the file at `path`, gives, and reports the proof or the finding.
pub(super) fn prove_file<W: Write>(
    path: &Path,
    mut source: Box<dyn Read>,
    signer: &Signer,
    args: &VerifyArgs,
    report: &mut ProofReport,
    findings: &mut Findings<W>,
) -> Result<Result<(), RepositoryRejection>, Failure> {
    let file_error = |error| Failure::Local(format!("{}: {error}", files::name(path)));
    let mut start = Vec::new();
    (&mut source).take(WRAPPING_BYTES).read_to_end(&mut start).map_err(file_error)?;
    files::refuse_wrapping(files::name(path), &start)?;
    let mut timer = StageTimer::start(&mut report.stages);
    let mut counted = Counted { source: Cursor::new(start).chain(source), bytes: 0 };
    let proof = prove(&mut counted, signer, args);
    timer.finish(Stage::Stream);
    report.bytes = counted.bytes;
    self::report(proof, file_error, args, report, findings)
}

/// Verifies the archive that `source` gives.
pub(super) fn prove(
    source: impl Read,
    signer: &Signer,
    args: &VerifyArgs,
) -> Result<Verified<StreamedRepository>, StreamProofError> {
    let mut stream_options = StreamOptions::default();
    stream_options.repository = options(args);
    stream_options.spill = Some(open_spill);
    stream_options.flag_records = true;
    let opened = stream::open(source, &stream_options)?;
    let did = opened.commit().did.to_owned();
    let signed = match signer.key_of(&did) {
        Ok(Some(key)) => opened.verify_signature(signer.did(), &key)?,
        Ok(None) => opened.without_signature(),
        Err(NoKey) => {
            opened.read_to_end()?;
            return Err(StreamProofError::NoKey(did));
        }
    };
    Ok(signed.verify()?)
}

/// A temporary file without a name.
fn open_spill() -> io::Result<Box<dyn Spill>> {
    Ok(Box::new(tempfile::tempfile()?))
}

/// Reports a proof or the finding.
pub(super) fn report<W: Write>(
    proof: Result<Verified<StreamedRepository>, StreamProofError>,
    io_failure: impl FnOnce(io::Error) -> Failure,
    args: &VerifyArgs,
    report: &mut ProofReport,
    findings: &mut Findings<W>,
) -> Result<Result<(), RepositoryRejection>, Failure> {
    match proof {
        Ok(whole) => {
            report.add_stream(&whole);
            Ok(Ok(()))
        }
        Err(StreamProofError::NoKey(did)) => Err(no_key(&did)),
        Err(StreamProofError::Stream(StreamFailure::Rejected(first))) => {
            report_first(&first, args, findings)?;
            Ok(Err(*first))
        }
        Err(StreamProofError::Stream(StreamFailure::Io(error))) => Err(io_failure(error)),
        Err(StreamProofError::Stream(other)) => Err(Failure::Local(other.to_string())),
    }
}

/// A reader that counts the bytes that were read.
struct Counted<R> {
    source: R,
    bytes: u64,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let len = self.source.read(out)?;
        self.bytes += len as u64;
        Ok(len)
    }
}

/// Bytes at the start of a file that show how it is wrapped.
const WRAPPING_BYTES: u64 = 4;

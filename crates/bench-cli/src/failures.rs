//! Which failure an error of the benchmark is.

use std::path::Path;

use ::bench::{BenchError, Results};
use ::report::publish::PublishError;
use ::report::{ReadError, ReadFault};

use crate::failure::Failure;
use crate::files;

/// The results of a benchmark in a file.
pub(crate) fn read_results(path: &Path) -> Result<Results, Failure> {
    ::report::parse(&files::read(path)?).map_err(|fault| {
        let is_local = matches!(fault, ReadFault::Io(_));
        let text = ReadError { path: files::name(path).into(), fault }.to_string();
        if is_local { Failure::Local(text) } else { Failure::Refused(text) }
    })
}

pub(crate) fn of_publishing(error: PublishError) -> Failure {
    match error {
        PublishError::Io(..) => Failure::Local(error.to_string()),
        _ => Failure::Refused(error.to_string()),
    }
}

pub(crate) fn of_bench(error: BenchError) -> Failure {
    match &error {
        BenchError::UnknownPeer { .. }
        | BenchError::OneFileForManyTasks(_)
        | BenchError::RustProfile(_) => Failure::Usage(error.to_string()),
        BenchError::Corpus { .. }
        | BenchError::Sidecar { .. }
        | BenchError::Accounts { .. }
        | BenchError::OtherCorpus(_) => Failure::Refused(error.to_string()),
        _ => Failure::Local(error.to_string()),
    }
}

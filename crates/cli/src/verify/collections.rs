//! The proof of whole collections: of an account, whose server sends only their part of the repository, or of such a part in a file.

use std::io::Write;
use std::path::Path;

use atproto::syntax::{AtIdentifier, CollectionPatternBuf};
use codec::car;
use codec::printable::Printable;
use crypto::PublicKey;
use verify::repository::RepositoryRejection;
use verify::{collections, record};

use super::report::{Download, ProofReport};
use super::signer::Signer;
use super::{Reported, VerifyArgs, report_first, server};
use crate::account::ResolvedAccount;
use crate::download::Target as DownloadTarget;
use crate::failure::Failure;
use crate::files;
use crate::findings::Findings;
use crate::network::{self, Online};
use crate::stage::{Stage, StageTimer, Stages};

/// Verifies collections of an account.
pub(super) fn verify_account<W: Write>(
    who: AtIdentifier<'_>,
    collections: &[CollectionPatternBuf],
    args: &VerifyArgs,
    online: &Online,
    findings: &mut Findings<W>,
) -> Result<Reported, Failure> {
    let Online { network, runtime, .. } = online;
    let mut stages = Stages::default();
    let account = ResolvedAccount::look_up(network, runtime, who, &mut stages)?;
    let (did, key) = (account.did(), account.key()?);
    let host = server(args, &account)?;
    let from = network::origin(host);
    let mut timer = StageTimer::start(&mut stages);
    let limits = args.download.limits();
    let slice = crate::collections::download(who, did, host, collections, &limits, online)?;
    timer.finish(Stage::Fetch);
    if let Some(path) = &args.save {
        let mut target = DownloadTarget::new(Some(path))?;
        target.write_all(&slice.archive).map_err(Failure::file(path))?;
        target.save()?;
    }

    let mut report = ProofReport::of_account(who, &account, stages);
    report.add_download(Download { host: from.clone(), bytes: slice.archive.len() as u64 });
    report.add_transfer(&slice);
    let (archive, did) = (&slice.archive, Some(did.as_str()));
    let outcome = match prove(archive, collections, did, &key, args, &mut report) {
        Ok(()) => Ok(()),
        Err(why) => {
            report_first(&why, args, findings)?;
            let text = format!("{who}: refused ({}): {why} (from {from})", why.code());
            Err(Failure::Refused(text))
        }
    };
    Ok((report, outcome))
}

/// Verifies collections by a file.
pub(super) fn verify_file<W: Write>(
    file: &Path,
    collections: &[CollectionPatternBuf],
    args: &VerifyArgs,
    findings: &mut Findings<W>,
) -> Result<Reported, Failure> {
    let signer = Signer::of(args)?;
    let key = signer.part_key("--collection")?;
    let slice = files::map(file)?;
    let mut report = ProofReport::of_file(file);
    report.bytes = slice.len() as u64;
    let outcome = match prove(&slice, collections, signer.did(), &key, args, &mut report) {
        Ok(()) => Ok(()),
        Err(why) => {
            report_first(&why, args, findings)?;
            let (code, text) = (why.code(), why.to_string());
            Err(Failure::refused(file, format_args!("refused ({code}): {}", Printable(&text))))
        }
    };
    Ok((report, outcome))
}

fn prove(
    slice: &[u8],
    collections: &[CollectionPatternBuf],
    did: Option<&str>,
    key: &PublicKey,
    args: &VerifyArgs,
    report: &mut ProofReport,
) -> Result<(), RepositoryRejection> {
    let mut timer = StageTimer::start(&mut report.stages);
    let mut options = record::Options::default();
    options.archive = car::Options::default();
    options.strict_records = args.strict_records;
    let proof = collections::verify(slice, collections, did, key, &options);
    timer.finish(Stage::Records);
    let proof = proof?;
    report.add_collections(collections, &proof);
    Ok(())
}

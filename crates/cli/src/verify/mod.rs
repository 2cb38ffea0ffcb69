//! `wireproof verify`: verifies a repository or the slice of a record in a file, or those of an account.
//!
//! | file | |
//! |---|---|
//! | `args` | the arguments, and what they name: a file, an account or a record |
//! | `signer` | the key that must have signed |
//! | `report` | the result as text and as JSON |

mod args;
mod report;
mod signer;

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use wireproof::atproto::syntax::AtIdentifier;
use wireproof::codec::printable::Printable;
use wireproof::crypto::PublicKey;
use wireproof::net::http::Url;
use wireproof::net::xrpc::{ErrorName, XrpcError};
use wireproof::verify::Verified;
use wireproof::verify::record;
use wireproof::verify::repository::{self, Options, RepositoryRejection, WholeRepository, parse};

use crate::download::{self, Target as DownloadTarget};
use crate::failure::Failure;
use crate::files;
use crate::findings::Findings;
use crate::json::RecordPath;
use crate::network::{self, Network};
use crate::output::Output;
use crate::resolve::ResolvedAccount;
use crate::stage::{Stage, StageTimer, Stages};
use args::{RecordAddress, SliceRecord, Target};
use report::{Download, Finding, ProofReport};
use signer::{NoKey, Signer};

pub(crate) use args::VerifyArgs;
pub(crate) use signer::account_keys;

pub(crate) fn run(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let target = Target::of(args)?;
    let mut findings = Findings::new(output, args.json, args.all);
    let (report, outcome) = match target {
        Target::File(path) => verify_file(path, args, &mut findings),
        Target::Slice(path, record) => verify_slice(path, &record, args, &mut findings),
        Target::Account(who) => verify_account(who, args, &mut findings),
        Target::Record(address) => verify_record(&address, args, &mut findings),
    }?;
    findings.finish(&report.with_totals(), ProofReport::to_text)?;
    outcome
}

/// A report, and the failure that it reports.
type Reported = (ProofReport, Result<(), Failure>);

fn verify_file(
    path: &Path,
    args: &VerifyArgs,
    findings: &mut Findings,
) -> Result<Reported, Failure> {
    let signer = Signer::of(args)?;
    let archive = files::map(path)?;
    let mut report = ProofReport::of_file(path, archive.len());
    let outcome = prove(&archive, &signer, args, &mut report, findings)?.map_err(|first| {
        let name = path.display();
        let why = first.to_string();
        Failure::Refused(format!("{name}: refused ({}): {}", first.code(), Printable(&why)))
    });
    Ok((report, outcome))
}

fn verify_account(
    who: AtIdentifier<'_>,
    args: &VerifyArgs,
    findings: &mut Findings,
) -> Result<Reported, Failure> {
    let network = Network::open(&args.network, args.from.as_slice())?;
    let runtime = network::runtime()?;
    let mut stages = Stages::default();
    let account = ResolvedAccount::look_up(&network, &runtime, who, &mut stages)?;
    let signer = Signer::of_account(account.did().to_buf(), account.key()?);
    let host = server(args, &account)?;
    let mut target = DownloadTarget::new(args.save.as_deref())?;
    let limits = args.download.limits();
    let mut timer = StageTimer::start(&mut stages);
    let download = download::repository(&network.xrpc, host, account.did(), &mut target, &limits);
    let fetched = runtime.block_on(download)?;
    timer.finish(Stage::Fetch);
    let saved = target.save()?;
    let archive = files::map(saved.path())?;

    let download = Download { host: fetched.host.into(), bytes: fetched.bytes };
    let from = download.host.clone();
    let mut report = ProofReport::of_account(who, &account, download, stages);
    let outcome = prove(&archive, &signer, args, &mut report, findings)?.map_err(|first| {
        let why = first.to_string();
        let (code, why) = (first.code(), Printable(&why));
        Failure::Refused(format!("{who}: refused ({code}): {why} (from {from})"))
    });
    Ok((report, outcome))
}

/// Verifies an archive, and reports the proof or the findings.
fn prove(
    archive: &[u8],
    signer: &Signer,
    args: &VerifyArgs,
    report: &mut ProofReport,
    findings: &mut Findings,
) -> Result<Result<(), RepositoryRejection>, Failure> {
    let options = options(args);
    match verify_stages(archive, signer, &options, args.rebuild, &mut report.stages) {
        Ok(whole) => {
            report.add_repository(&whole);
            Ok(Ok(()))
        }
        Err(ProofError::NoKey(did)) => Err(Failure::Refused(format!(
            "the commit is of {did}: --keys has no key of that account"
        ))),
        Err(ProofError::Refused(first)) => {
            if args.all {
                report_all(archive, signer, &options, &first, findings)?;
            } else {
                report_first(&first, args, findings)?;
            }
            Ok(Err(first))
        }
    }
}

fn options(args: &VerifyArgs) -> Options {
    let mut options = Options::default();
    options.strict_records = args.strict_records;
    options
}

/// Why there is no proof.
enum ProofError {
    Refused(RepositoryRejection),
    /// There is no key for this account.
    NoKey(String),
}

impl From<RepositoryRejection> for ProofError {
    fn from(rejection: RepositoryRejection) -> Self {
        Self::Refused(rejection)
    }
}

/// Runs the stages up to the first that fails, and times each.
fn verify_stages<'a>(
    archive: &'a [u8],
    signer: &Signer,
    options: &Options,
    rebuild: bool,
    stages: &mut Stages,
) -> Result<Verified<WholeRepository<'a>>, ProofError> {
    let mut timer = StageTimer::start(stages);
    let parsed = parse(archive, options)?;
    timer.finish(Stage::Parse);
    let did = parsed.repository().commit().did;
    let signed = match signer.key_of(did).map_err(|NoKey| ProofError::NoKey(did.to_owned()))? {
        Some(key) => parsed.verify_signature(signer.did(), &key)?,
        None => parsed.without_signature(),
    };
    timer.finish(Stage::Signature);
    let walked = signed.walk()?;
    timer.finish(Stage::Tree);
    if rebuild {
        walked.rebuild()?;
        timer.finish(Stage::Rebuild);
    }
    let whole = walked.verify_records()?;
    timer.finish(Stage::Records);
    Ok(whole)
}

/// Reports the rejection that ended the proof. In text it is the message of the failure.
fn report_first(
    first: &RepositoryRejection,
    args: &VerifyArgs,
    findings: &mut Findings,
) -> Result<(), Failure> {
    if args.json { findings.add(|| Finding::new(first)) } else { Ok(()) }
}

/// Reports every rejection as it is found, or `first` if there is no other.
fn report_all(
    archive: &[u8],
    signer: &Signer,
    options: &Options,
    first: &RepositoryRejection,
    findings: &mut Findings,
) -> Result<(), Failure> {
    let parsed = parse(archive, options).ok();
    let did = parsed.map(|parsed| parsed.repository().commit().did);
    let key = did.and_then(|did| signer.key_of(did).ok().flatten());
    let (mut count, mut printed) = (0, Ok(()));
    repository::visit_rejections(archive, signer.did(), key.as_ref(), options, |rejection| {
        count += 1;
        printed = findings.add(|| Finding::new(rejection));
        if printed.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    if count == 0 { findings.add(|| Finding::new(first)) } else { printed }
}

fn verify_record(
    address: &RecordAddress<'_>,
    args: &VerifyArgs,
    findings: &mut Findings,
) -> Result<Reported, Failure> {
    let RecordAddress { who, collection, rkey } = *address;
    let network = Network::open(&args.network, args.from.as_slice())?;
    let runtime = network::runtime()?;
    let mut stages = Stages::default();
    let account = ResolvedAccount::look_up(&network, &runtime, who, &mut stages)?;
    let (did, key) = (account.did(), account.key()?);
    let host = server(args, &account)?;
    let mut timer = StageTimer::start(&mut stages);
    let archive = runtime.block_on(network.xrpc.get_record(host, did, collection, rkey));
    let archive = archive.map_err(record_failure)?;
    timer.finish(Stage::Fetch);
    if let Some(path) = &args.save {
        let mut target = DownloadTarget::new(Some(path))?;
        target.write_all(&archive).map_err(Failure::file(path))?;
        target.save()?;
    }

    let (from, bytes) = (network::origin(host), archive.len() as u64);
    let download = Download { host: from.clone(), bytes };
    let mut report = ProofReport::of_account(who, &account, download, stages);
    let path = format!("{collection}/{rkey}");
    let proved = prove_record(&archive, &path, Some(did.as_str()), &key, args, &mut report)?;
    let outcome = match proved {
        Ok(()) => Ok(()),
        Err(why) => {
            report_first(&why, args, findings)?;
            let text = format!("{path}: refused ({}): {why} (from {from})", why.code());
            Err(Failure::Refused(text))
        }
    };
    Ok((report, outcome))
}

/// Verifies a file as the proof of a record.
fn verify_slice(
    file: &Path,
    record: &SliceRecord<'_>,
    args: &VerifyArgs,
    findings: &mut Findings,
) -> Result<Reported, Failure> {
    let signer = Signer::of_record(args, record.did)?;
    let key = signer.record_key()?;
    let slice = files::map(file)?;
    let mut report = ProofReport::of_file(file, slice.len());
    let path = record.path.as_str();
    let outcome = match prove_record(&slice, path, signer.did(), &key, args, &mut report)? {
        Ok(()) => Ok(()),
        Err(why) => {
            report_first(&why, args, findings)?;
            let (code, text) = (why.code(), why.to_string());
            let text = format_args!("{path}: refused ({code}): {}", Printable(&text));
            Err(Failure::refused(file, text))
        }
    };
    Ok((report, outcome))
}

/// Verifies a slice as the proof of the record at `path`, or of its absence.
fn prove_record(
    slice: &[u8],
    path: &str,
    did: Option<&str>,
    key: &PublicKey,
    args: &VerifyArgs,
    report: &mut ProofReport,
) -> Result<Result<(), RepositoryRejection>, Failure> {
    let mut timer = StageTimer::start(&mut report.stages);
    let mut options = record::Options::default();
    options.strict_records = args.strict_records;
    let proof = record::verify(slice, path, did, key, &options);
    timer.finish(Stage::Record);
    match proof {
        Ok(proof) => report.add_record(RecordPath::split(path), &proof).map(Ok),
        Err(why) => Ok(Err(why)),
    }
}

/// The server to download from.
fn server<'a>(args: &'a VerifyArgs, account: &'a ResolvedAccount) -> Result<&'a Url, Failure> {
    args.from.as_ref().map_or_else(|| account.host(), Ok)
}

/// A server's word that there is no record is not a proof.
fn record_failure(error: XrpcError) -> Failure {
    match error.name() {
        Some(ErrorName::RecordNotFound) => Failure::Network(format!("{error}, without a proof")),
        _ => error.into(),
    }
}

//! `wireproof verify`: verifies a repository or the slice of a record in a file, or of an account.
//!
//! | file | |
//! |---|---|
//! | `args` | the arguments, which name a file, an account or a record |
//! | `collections` | the proof of whole collections |
//! | `signer` | the key that must have signed |
//! | `stream` | the proof of an archive that is read as it comes |
//! | `report` | the result as text and as JSON |

mod args;
mod collections;
mod report;
mod signer;
mod stream;

use std::io::Write;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

use atproto::syntax::AtIdentifier;
use codec::printable::Printable;
use crypto::PublicKey;
use net::http::Url;
use net::xrpc::{ErrorName, XrpcError};
use verify::Verified;
use verify::record;
use verify::repository::{self, Options, RepositoryRejection, WholeRepository, parse};

use crate::account::ResolvedAccount;
use crate::batch::{self, Outcome};
use crate::download::{self, DownloadReader, Target as DownloadTarget};
use crate::failure::Failure;
use crate::files;
use crate::findings::Findings;
use crate::inputs::{InputKind, Inputs};
use crate::json::RecordPath;
use crate::network::{self, LazyNetwork, Online};
use crate::output::Output;
use crate::stage::{Stage, StageTimer, Stages};
use args::{RecordAddress, SliceRecord, Target};
use report::{Download, Finding, ProofReport};
use signer::{NoKey, Signer};

pub(crate) use args::VerifyArgs;

pub(crate) fn run(args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    let inputs = Inputs::new(&args.targets, InputKind::Archives);
    let target = match (&args.file, inputs.single()) {
        (Some(file), _) => Target::of_file(file, args)?,
        (None, Some(target)) => Target::of(target, args)?,
        (None, None) => return verify_many(inputs, args, output),
    };
    let session = Session::new(args, true)?;
    let mut findings = Findings::new(output, args.json, args.all);
    let (report, outcome) = verify_target(target, &session, &mut findings)?;
    findings.finish(&report.with_totals(), ProofReport::to_text)?;
    outcome
}

/// State that the proofs of all inputs share.
struct Session<'a> {
    args: &'a VerifyArgs,
    /// The key for files, if one is given.
    signer: Option<Signer>,
    network: LazyNetwork<'a>,
    /// Threads that hash an archive.
    threads: NonZeroUsize,
}

impl<'a> Session<'a> {
    /// For one input or for many.
    fn new(args: &'a VerifyArgs, is_alone: bool) -> Result<Self, Failure> {
        let signer = args.signer.is_given().then(|| Signer::of(args)).transpose()?;
        let network = LazyNetwork::new(&args.network, args.from.as_slice(), is_alone);
        let threads = if is_alone { args.jobs.count() } else { NonZeroUsize::MIN };
        Ok(Self { args, signer, network, threads })
    }

    /// A file contains no statement about its owner that can be trusted: a key is required.
    fn file_signer(&self) -> Result<&Signer, Failure> {
        self.signer.as_ref().ok_or_else(args::no_signer)
    }

    fn options(&self) -> Options {
        let mut options = options(self.args);
        options.threads = self.threads;
        options
    }
}

/// Verifies every input, on several threads.
fn verify_many(inputs: Inputs<'_>, args: &VerifyArgs, output: Output) -> Result<(), Failure> {
    args::check_batch_options(args)?;
    let session = Session::new(args, false)?;
    let done = report::proof_word(!args.signer.without_signature);
    batch::run(inputs, &args.jobs, done, args.json, output, |named| {
        let mut findings = Findings::of_one(args.json);
        let verified = Target::of(named, args)
            .and_then(|target| verify_target(target, &session, &mut findings));
        let (report, result) = match verified {
            Ok((report, Ok(()))) => (report.with_totals(), Ok(())),
            Ok((report, Err(failure))) => (report.with_totals().with_error(&failure), Err(failure)),
            Err(failure) => (ProofReport::of_failure(named, &failure), Err(failure)),
        };
        let printed = findings.finish(&report, |report| report.to_line(named))?;
        Ok(Outcome { printed, result })
    })
}

/// A report, and the failure that it reports.
type Reported = (ProofReport, Result<(), Failure>);

fn verify_target<W: Write>(
    target: Target<'_>,
    session: &Session<'_>,
    findings: &mut Findings<W>,
) -> Result<Reported, Failure> {
    let (args, network) = (session.args, &session.network);
    match target {
        Target::File(path) => verify_file(path, session, findings),
        Target::Slice(path, record) => verify_slice(path, &record, args, findings),
        Target::Account(who) => verify_account(who, session, &*network.open()?, findings),
        Target::Record(address) => verify_record(&address, args, &*network.open()?, findings),
        Target::Collections(who, names) => {
            collections::verify_account(who, &names, args, &*network.open()?, findings)
        }
        Target::CollectionsSlice(path, names) => {
            collections::verify_file(path, &names, args, findings)
        }
    }
}

/// Whether the proof needs the archive as a whole: to find every fault, or to read the records again.
fn needs_whole_archive(args: &VerifyArgs) -> bool {
    args.all || args.rebuild
}

fn verify_file<W: Write>(
    path: &Path,
    session: &Session<'_>,
    findings: &mut Findings<W>,
) -> Result<Reported, Failure> {
    let (args, signer) = (session.args, session.file_signer()?);
    let mut report = ProofReport::of_file(path);
    let stream = if needs_whole_archive(args) { None } else { files::open_stream(path)? };
    let proved = match stream {
        Some(stream) => stream::prove_file(path, stream, signer, args, &mut report, findings),
        None => {
            let archive = files::map(path)?;
            report.bytes = archive.len() as u64;
            prove(&archive, signer, session, &mut report, findings)
        }
    };
    let outcome = proved?.map_err(|first| {
        let (name, why) = (files::name(path), first.to_string());
        Failure::Refused(format!("{name}: refused ({}): {}", first.code(), Printable(&why)))
    });
    Ok((report, outcome))
}

fn verify_account<W: Write>(
    who: AtIdentifier<'_>,
    session: &Session<'_>,
    online: &Online,
    findings: &mut Findings<W>,
) -> Result<Reported, Failure> {
    let args = session.args;
    let Online { network, runtime, .. } = online;
    let mut stages = Stages::default();
    let account = ResolvedAccount::look_up(network, runtime, who, &mut stages)?;
    let signer = Signer::of_account(account.did().to_buf(), account.key()?);
    let is_streamed = args.save.is_none() && !needs_whole_archive(args);
    let mut report = ProofReport::of_account(who, &account, stages);
    let proved = if is_streamed {
        prove_download(&account, &signer, args, online, &mut report, findings)
    } else {
        prove_saved(&account, &signer, session, online, &mut report, findings)
    };
    let outcome = proved?.map_err(|first| {
        let (why, from) = (first.to_string(), report.host());
        let (code, why) = (first.code(), Printable(&why));
        Failure::Refused(format!("{who}: refused ({code}): {why} (from {from})"))
    });
    Ok((report, outcome))
}

/// Verifies a repository while it is downloaded.
fn prove_download<W: Write>(
    account: &ResolvedAccount,
    signer: &Signer,
    args: &VerifyArgs,
    online: &Online,
    report: &mut ProofReport,
    findings: &mut Findings<W>,
) -> Result<Result<(), RepositoryRejection>, Failure> {
    let (host, limits) = (server(args, account)?, args.download.limits());
    let mut timer = StageTimer::start(&mut report.stages);
    let mut download = DownloadReader::start(online, host, account.did(), &limits)?;
    let proof = stream::prove(&mut download, signer, args);
    timer.finish_both(Stage::Fetch, download.waited(), Stage::Stream);
    let fetched = download.finish()?;
    report.add_download(Download { host: fetched.host.into(), bytes: fetched.bytes });
    let spill_failure = |error| Failure::Local(format!("a temporary file: {error}"));
    stream::report(proof, spill_failure, args, report, findings)
}

/// Downloads a repository, saves it if an option says so, and verifies it.
fn prove_saved<W: Write>(
    account: &ResolvedAccount,
    signer: &Signer,
    session: &Session<'_>,
    online: &Online,
    report: &mut ProofReport,
    findings: &mut Findings<W>,
) -> Result<Result<(), RepositoryRejection>, Failure> {
    let args = session.args;
    let (host, limits) = (server(args, account)?, args.download.limits());
    let mut target = DownloadTarget::new(args.save.as_deref())?;
    let mut timer = StageTimer::start(&mut report.stages);
    let Online { network, runtime, .. } = online;
    let (xrpc, line) = (&network.xrpc, online.progress_line());
    let download = download::repository(xrpc, host, account.did(), &mut target, &limits, line);
    let fetched = runtime.block_on(download)?;
    timer.finish(Stage::Fetch);
    let saved = target.save()?;
    let archive = files::map(saved.path())?;
    report.add_download(Download { host: fetched.host.into(), bytes: fetched.bytes });
    prove(&archive, signer, session, report, findings)
}

/// Verifies an archive, and reports the proof or the findings.
fn prove<W: Write>(
    archive: &[u8],
    signer: &Signer,
    session: &Session<'_>,
    report: &mut ProofReport,
    findings: &mut Findings<W>,
) -> Result<Result<(), RepositoryRejection>, Failure> {
    let (args, options) = (session.args, session.options());
    match verify_stages(archive, signer, &options, args.rebuild, &mut report.stages) {
        Ok(whole) => {
            report.add_repository(&whole);
            Ok(Ok(()))
        }
        Err(ProofError::NoKey(did)) => Err(no_key(&did)),
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

fn no_key(did: &str) -> Failure {
    Failure::Refused(format!("the commit is of {did}: --keys has no key of that account"))
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

/// Runs and times the stages up to the first that fails.
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
fn report_first<W: Write>(
    first: &RepositoryRejection,
    args: &VerifyArgs,
    findings: &mut Findings<W>,
) -> Result<(), Failure> {
    if args.json { findings.add(|| Finding::new(first)) } else { Ok(()) }
}

/// Reports every rejection as it is found, or `first` if there is no other.
fn report_all<W: Write>(
    archive: &[u8],
    signer: &Signer,
    options: &Options,
    first: &RepositoryRejection,
    findings: &mut Findings<W>,
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

fn verify_record<W: Write>(
    address: &RecordAddress<'_>,
    args: &VerifyArgs,
    Online { network, runtime, .. }: &Online,
    findings: &mut Findings<W>,
) -> Result<Reported, Failure> {
    let RecordAddress { who, collection, rkey } = *address;
    let mut stages = Stages::default();
    let account = ResolvedAccount::look_up(network, runtime, who, &mut stages)?;
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
    let mut report = ProofReport::of_account(who, &account, stages);
    report.add_download(download);
    let path = format!("{collection}/{rkey}");
    let proved = prove_record(&archive, &path, Some(did.as_str()), &key, args, &mut report);
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
fn verify_slice<W: Write>(
    file: &Path,
    record: &SliceRecord<'_>,
    args: &VerifyArgs,
    findings: &mut Findings<W>,
) -> Result<Reported, Failure> {
    let signer = Signer::of_record(args, record.did)?;
    let key = signer.part_key("--record")?;
    let slice = files::map(file)?;
    let mut report = ProofReport::of_file(file);
    report.bytes = slice.len() as u64;
    let path = record.path.as_str();
    let outcome = match prove_record(&slice, path, signer.did(), &key, args, &mut report) {
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
) -> Result<(), RepositoryRejection> {
    let mut timer = StageTimer::start(&mut report.stages);
    let mut options = record::Options::default();
    options.strict_records = args.strict_records;
    let proof = record::verify(slice, path, did, key, &options);
    timer.finish(Stage::Record);
    let proof = proof?;
    report.add_record(RecordPath::split(path), &proof);
    Ok(())
}

/// The server to download from.
fn server<'a>(args: &'a VerifyArgs, account: &'a ResolvedAccount) -> Result<&'a Url, Failure> {
    args.from.as_ref().map_or_else(|| account.host(), Ok)
}

/// A server's word that there is no record is not a proof.
pub(crate) fn record_failure(error: XrpcError) -> Failure {
    match error.name() {
        Some(ErrorName::RecordNotFound) => Failure::Network(format!("{error}, without a proof")),
        _ => error.into(),
    }
}

//! `wireproof verify`: is this file the whole repository that an account signed?

mod report;
mod signer;

use std::time::Instant;

use mapping::MappedFile;
use wireproof::verify::Verified;
use wireproof::verify::repository::{Options, RepositoryRejection, WholeRepository, faults, parse};

use crate::args::verify::VerifyRepositoryArgs;
use crate::failure::Failure;
use crate::output::Output;
use report::{Report, Stage};
use signer::{NoKey, Signer};

pub(crate) use signer::account_keys;

pub(crate) fn run(args: &VerifyRepositoryArgs, output: Output) -> Result<(), Failure> {
    let signer = Signer::of(args)?;
    let file = MappedFile::open(&args.file).map_err(Failure::file(&args.file))?;
    let mut report = Report::new(&args.file, file.len());
    let outcome = match prove(&file, &signer, args.rebuild, &mut report) {
        Ok(whole) => {
            report.prove(&whole);
            Ok(())
        }
        Err(Stop::NoKey(did)) => return Err(no_key(&did)),
        Err(Stop::Refused(first)) => {
            let reason = format!("refused ({}): {first}", first.code());
            report.refuse(&if args.all { all(&file, &signer, first) } else { vec![first] });
            Err(Failure::Refused(format!("{}: {reason}", args.file.display())))
        }
    };
    if args.json {
        report.write_json(output.stdout())?;
    } else {
        report.write_text(output.stdout())?;
    }
    outcome
}

/// Why there is no proof.
enum Stop {
    Refused(RepositoryRejection),
    /// No key of this account was given.
    NoKey(String),
}

impl From<RepositoryRejection> for Stop {
    fn from(rejection: RepositoryRejection) -> Self {
        Self::Refused(rejection)
    }
}

fn no_key(did: &str) -> Failure {
    Failure::Refused(format!("the commit is of {did}, and no key of that account was given"))
}

/// Goes through the stages and notes how long each takes, up to the first that fails.
fn prove<'a>(
    file: &'a [u8],
    signer: &Signer,
    rebuild: bool,
    report: &mut Report,
) -> Result<Verified<WholeRepository<'a>>, Stop> {
    let mut clock = Instant::now();
    let mut ended = |stage: Stage| {
        report.add(stage, clock.elapsed());
        clock = Instant::now();
    };
    let parsed = parse(file, &Options::default())?;
    ended(Stage::Parse);
    let did = parsed.repository().commit().did;
    let signed = match signer.key_of(did).map_err(|NoKey| Stop::NoKey(did.to_owned()))? {
        Some(key) => parsed.verify_signature(signer.did(), &key)?,
        None => parsed.without_signature(),
    };
    ended(Stage::Signature);
    let walked = signed.walk()?;
    ended(Stage::Tree);
    if rebuild {
        walked.rebuild()?;
        ended(Stage::Rebuild);
    }
    let whole = walked.verify_records()?;
    ended(Stage::Records);
    Ok(whole)
}

/// All faults, of which `first` is one.
fn all(file: &[u8], signer: &Signer, first: RepositoryRejection) -> Vec<RepositoryRejection> {
    let parsed = parse(file, &Options::default()).ok();
    let key =
        parsed.and_then(|parsed| signer.key_of(parsed.repository().commit().did).ok().flatten());
    let found = faults(file, signer.did(), key.as_ref(), &Options::default(), MAX_FAULTS);
    if found.is_empty() { vec![first] } else { found }
}

/// Faults beyond which more would not help anybody.
const MAX_FAULTS: usize = 10_000;

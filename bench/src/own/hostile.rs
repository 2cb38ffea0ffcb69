//! Verifies a hostile case as any caller does; a rejection begins with the code of the broken rule.

use atproto::corpus;
use protocol::{BoxError, Loaded, Owner, Parts, Proof, Work};
use verify::repository::{self, Options};
use verify::sync::Outcome;

use super::{Variants, commit, repo};

/// A variant makes the same checks as the corresponding task with valid input.
pub(super) fn variants() -> Variants {
    vec![("repo".to_owned(), repo::check_names()), ("frames".to_owned(), commit::check_names())]
}

/// Loads `variant`; `None` if it is unknown.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, BoxError> {
    let [file, owner] = files else { return Err("not a case and its owner".into()) };
    let owner = serde_json::from_slice(owner)?;
    let verify = match variant {
        "repo" => verify_repo,
        "frames" => verify_frames,
        _ => return Ok(None),
    };
    Ok(Some(Box::new(Case { file, owner, verify })))
}

type Verify = fn(&[u8], &Owner) -> Result<(), String>;

struct Case<'f> {
    file: &'f [u8],
    owner: Owner,
    verify: Verify,
}

impl Work for Case<'_> {
    fn loaded(&self) -> Loaded {
        Loaded::of([self.file.len()])
    }

    fn prove(&mut self) -> Result<Proof, BoxError> {
        Ok(Proof::of_case((self.verify)(self.file, &self.owner).err()))
    }

    fn pass(&mut self) -> Result<Parts, BoxError> {
        let _ = (self.verify)(self.file, &self.owner);
        Ok(Parts::default())
    }
}

fn verify_repo(file: &[u8], owner: &Owner) -> Result<(), String> {
    let key = repo::key(owner).map_err(|error| error.to_string())?;
    match repository::verify(file, Some(&owner.did), &key, &Options::default()) {
        Ok(_) => Ok(()),
        Err(rejection) => Err(format!("{}: {rejection}", rejection.code())),
    }
}

/// Verifies all frames in order; the last one gives the verdict. A gap before it is a rejection, because its
/// changes are to be applied.
fn verify_frames(file: &[u8], owner: &Owner) -> Result<(), String> {
    let frames = corpus::read(file).map_err(|error| error.to_string())?;
    let (mut judge, mut state) = (commit::judge(), commit::empty_state());
    let keys = commit::Keys::of(&[(owner.did.clone(), owner.signing_key.clone())].into());
    let now = owner.now.as_deref().and_then(commit::unix_micros);
    let now = now.unwrap_or_else(|| commit::day_after_newest(&frames));
    let mut verdict = Err("no frame".to_owned());
    for frame in &frames {
        let Ok(judged) = judge.judge(frame, &keys, &mut state, now);
        let rejection = commit::rejection(&judged.outcome).or_else(|| commit::gap(&judged.outcome));
        verdict = match (rejection, judged.outcome) {
            (Some(reason), _) => Err(reason),
            (None, Outcome::Unjudged(_)) => Err("nothing to verify".to_owned()),
            (None, _) => Ok(()),
        };
    }
    verdict
}

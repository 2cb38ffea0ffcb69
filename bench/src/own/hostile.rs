//! What do we say to a hostile case? The verdict that any caller gets, with the rule's name.

use serde::Deserialize;
use wireproof::atproto::corpus;
use wireproof::verify::repository::{self, Options};
use wireproof::verify::sync::Outcome;

use super::Work;
use crate::corpora::judged::{self, Keys};
use crate::corpora::{Owner, repositories};
use crate::counts::Counts;
use crate::protocol::Loaded;

/// The variants by name, each with the checks of the task that does the same with what is valid.
pub(super) fn variants() -> impl Iterator<Item = (String, &'static [&'static str])> {
    [("repo".to_owned(), super::repo::CHECKS), ("frames".to_owned(), super::commit::CHECKS)]
        .into_iter()
}

/// Makes ready for `variant`; `None` if there is no such one.
pub(super) fn open<'f>(
    variant: &str,
    files: &'f [Vec<u8>],
) -> Result<Option<Box<dyn Work + 'f>>, String> {
    let [file, told] = files else { return Err("not a case and what is told of it".to_owned()) };
    let told: Told = serde_json::from_slice(told).map_err(|error| error.to_string())?;
    let judge: fn(&[u8], &Told) -> Result<(), String> = match variant {
        "repo" => judge_repo,
        "frames" => judge_frames,
        _ => return Ok(None),
    };
    Ok(Some(Box::new(Case { file, told, judge, reason: None })))
}

/// What is told of a case.
#[derive(Deserialize)]
struct Told {
    #[serde(flatten)]
    owner: Owner,
    now: Option<String>,
}

struct Case<'f> {
    file: &'f [u8],
    told: Told,
    judge: fn(&[u8], &Told) -> Result<(), String>,
    /// Why the case is not accepted.
    reason: Option<String>,
}

impl Work for Case<'_> {
    fn loaded(&self) -> Loaded {
        Loaded { units: 1, bytes: self.file.len() as u64 }
    }

    fn prove(&mut self) -> Counts {
        self.reason = (self.judge)(self.file, &self.told).err();
        let is_refused = u64::from(self.reason.is_some());
        [("accepted", 1 - is_refused), ("refused", is_refused)].into_iter().collect()
    }

    fn pass(&mut self) {
        let _ = (self.judge)(self.file, &self.told);
    }

    fn reason(&self) -> Option<String> {
        self.reason.clone()
    }
}

fn judge_repo(file: &[u8], told: &Told) -> Result<(), String> {
    let key = repositories::key(&told.owner).map_err(|error| error.to_string())?;
    match repository::verify(file, Some(&told.owner.did), &key, &Options::default()) {
        Ok(_) => Ok(()),
        Err(rejection) => Err(format!("{}: {rejection}", rejection.code())),
    }
}

/// All frames in turn; the last one's verdict counts. Nothing may be missing before it: its changes
/// are to be applied.
fn judge_frames(file: &[u8], told: &Told) -> Result<(), String> {
    let frames = corpus::read(file).map_err(|error| error.to_string())?;
    let (mut judge, mut state) = (judged::judge(), judged::nobody());
    let Owner { did, signing_key } = told.owner.clone();
    let keys = Keys::of(&[(did, signing_key)].into());
    let told_time = told.now.as_deref().and_then(judged::micros);
    let now = told_time.unwrap_or_else(|| judged::now_micros(&frames));
    let mut verdict = Err("no frame".to_owned());
    for frame in &frames {
        let Ok(judged) = judge.judge(frame, &keys, &mut state, now);
        let refusal = judged::refusal(&judged.outcome).or_else(|| judged::gap(&judged.outcome));
        verdict = match (refusal, judged.outcome) {
            (Some(reason), _) => Err(reason),
            (None, Outcome::Unjudged(_)) => Err("nothing to judge".to_owned()),
            (None, _) => Ok(()),
        };
    }
    verdict
}

//! One account on the host: comparisons of its status, its newest commit, its repository, its blocks and its records.

use std::time::Duration;

use atproto::mst::TreeLimits;
use atproto::mst::canonical::Step;
use atproto::syntax::Tid;
use codec::Cid;
use codec::car::{self, HashProof};
use crypto::PublicKey;
use net::http::Limits;
use tokio::time::sleep;
use verify::repository::RepositoryRejection;
use verify::{commit, record, repository};

use crate::answers::{self, LatestCommit, Status};
use crate::ask::{Host, Parameters, Refusal, Reply};
use crate::finding::Finding;
use crate::identities::Identities;
use crate::rule::{self, Rule};
use crate::{Options, now_micros};

/// The host's statements about an account.
#[derive(Clone, Debug, Default)]
pub(crate) struct AccountFacts {
    /// Its status; `None` if the host does not have it, or did not answer.
    pub(crate) status: Option<Status>,
    /// Whether the host says that it does not have the account.
    pub(crate) is_unknown: bool,
    /// The revision of the newest commit that was proved.
    pub(crate) proved_rev: Option<Tid>,
}

/// The commit of a repository, and paths of some of its records.
struct ProvedRepo {
    root: Cid,
    rev: Tid,
    records: Vec<(String, Cid)>,
}

/// Judges accounts of one host.
pub(crate) struct AccountJudge<'h> {
    pub(crate) host: &'h Host,
    pub(crate) identities: &'h mut Identities,
    pub(crate) is_relay: bool,
    pub(crate) options: &'h Options,
}

/// The findings of a round of requests: writes between the requests can explain some, so a round is repeated.
type Round = Vec<Finding>;

impl AccountJudge<'_> {
    /// Judges one account.
    pub(crate) async fn judge(&mut self, did: &str) -> AccountFacts {
        let mut facts = AccountFacts::default();
        match self.status(did).await {
            Ok(Some(status)) => facts.status = Some(status),
            Ok(None) => return facts,
            Err(refusal) => {
                facts.is_unknown = refusal.is_unknown_account();
                return facts;
            }
        }
        let is_active = facts.status.as_ref().is_some_and(|status| status.active);
        if is_active {
            facts.proved_rev = self.judge_active(did).await;
        } else {
            self.judge_inactive(did).await;
        }
        facts
    }

    /// `getRepoStatus`; `None` if there is no answer, which is noted.
    pub(crate) async fn status(&self, did: &str) -> Result<Option<Status>, Refusal> {
        let method = "getRepoStatus";
        let parameters = [("did", did)];
        let parsed = match self.host.ask(method, &parameters, &Limits::DOCUMENT).await {
            Reply::Body(body) => answers::status(&body),
            Reply::TooLong(_) => Err("the body is longer than 256 KiB".to_owned()),
            Reply::Refused(refusal) if refusal.is_no_method() => {
                self.missing(method, &parameters, &refusal);
                return Ok(None);
            }
            Reply::Refused(refusal) => return Err(refusal),
            Reply::Elsewhere | Reply::Failed => return Ok(None),
        };
        let (rule, text) = match parsed {
            Ok(status) if status.did == did => return Ok(Some(status)),
            Ok(status) => (&rule::STATUS_ACCOUNT, format!("the answer is about {}", status.did)),
            Err(fault) => (&rule::SCHEMA, fault),
        };
        self.host.note(self.found(rule, method, &parameters, did, text));
        Ok(None)
    }

    async fn latest(&self, did: &str) -> Result<Option<LatestCommit>, Refusal> {
        let method = "getLatestCommit";
        let parameters = [("did", did)];
        let parsed = match self.host.ask(method, &parameters, &Limits::DOCUMENT).await {
            Reply::Body(body) => answers::latest_commit(&body),
            Reply::TooLong(_) => Err("the body is longer than 256 KiB".to_owned()),
            Reply::Refused(refusal) if refusal.is_no_method() => {
                self.missing(method, &parameters, &refusal);
                return Ok(None);
            }
            Reply::Refused(refusal) => return Err(refusal),
            Reply::Elsewhere | Reply::Failed => return Ok(None),
        };
        match parsed {
            Ok(latest) => Ok(Some(latest)),
            Err(fault) => {
                self.host.note(self.found(&rule::SCHEMA, method, &parameters, did, fault));
                Ok(None)
            }
        }
    }

    /// Judges an active account, in up to three rounds; returns the revision of its proved repository.
    async fn judge_active(&mut self, did: &str) -> Option<Tid> {
        let mut found: Option<Round> = None;
        let mut proved = None;
        for round in 0..MAX_ROUNDS {
            if round > 0 {
                sleep(ROUND_DELAY).await;
                // It may have become inactive, or have moved.
                match self.status(did).await {
                    Ok(Some(status)) if status.active => {}
                    _ => return proved,
                }
            }
            let (findings, rev) = self.round(did).await;
            proved = rev.or(proved);
            let is_in = |known: &Round, finding: &Finding| {
                known.iter().any(|of| (of.code, of.method) == (finding.code, finding.method))
            };
            let lasting = findings.into_iter();
            let lasting: Round = match &found {
                None => lasting.collect(),
                Some(known) => lasting.filter(|finding| is_in(known, finding)).collect(),
            };
            if lasting.is_empty() {
                return proved;
            }
            found = Some(lasting);
        }
        found.into_iter().flatten().for_each(|finding| self.host.note(finding));
        proved
    }

    /// Asks for everything once.
    async fn round(&mut self, did: &str) -> (Round, Option<Tid>) {
        let mut round = Round::new();
        let before = match self.latest(did).await {
            Ok(latest) => latest,
            Err(refusal) => {
                round.push(self.refused("getLatestCommit", did, &refusal));
                None
            }
        };
        let status = self.status(did).await.ok().flatten();
        let repo = self.repo(did, &mut round).await;
        let block_rev = match before {
            Some(before) => self.commit_block(did, before.cid, &mut round).await,
            None => None,
        };
        if let Some(repo) = &repo {
            self.records(did, repo, &mut round).await;
            if let Some((_, cid)) = repo.records.first() {
                self.block(did, *cid, &mut round).await;
            }
        }
        let after = self.latest(did).await.ok().flatten();
        if let (Some(before), Some(after)) = (before, after) {
            let status_rev = status.and_then(|status| status.rev);
            round.extend(self.stated_revs(did, (before, after), status_rev, block_rev));
            if let Some(repo) = &repo {
                round.extend(self.compare(did, repo, before, after));
            }
        }
        let is_usable = |repo: &ProvedRepo| !is_future(repo.rev);
        (round, repo.filter(is_usable).map(|repo| repo.rev))
    }

    /// Compares the stated revisions with one another, and with the signed one.
    fn stated_revs(
        &self,
        did: &str,
        (before, after): (LatestCommit, LatestCommit),
        status_rev: Option<Tid>,
        signed_rev: Option<Tid>,
    ) -> Vec<Finding> {
        let range = before.rev.min(after.rev)..=before.rev.max(after.rev);
        let status = status_rev.filter(|rev| !range.contains(rev)).map(|rev| {
            let (first, last) = (before.rev, after.rev);
            let text = format!("revision {rev}, but getLatestCommit has {first} and then {last}");
            ("getRepoStatus", text)
        });
        let commit = signed_rev.filter(|signed| *signed != before.rev).map(|signed| {
            let LatestCommit { cid, rev } = before;
            ("getLatestCommit", format!("revision {rev}, but the commit {cid} has {signed}"))
        });
        let found = [status, commit].into_iter().flatten();
        let found = found.map(|(method, text)| {
            self.found(&rule::STATED_REV, method, &[("did", did)], did, text)
        });
        found.collect()
    }

    /// The repository against the newest commits before and after it was asked for.
    fn compare(
        &self,
        did: &str,
        repo: &ProvedRepo,
        before: LatestCommit,
        after: LatestCommit,
    ) -> Option<Finding> {
        let ProvedRepo { root, rev, .. } = *repo;
        let parameters = [("did", did)];
        if is_future(rev) {
            let text = format!("revision {rev} is more than 5 minutes ahead of the clock");
            return Some(self.found(&rule::FUTURE_REPO, "getRepo", &parameters, did, text));
        }
        for stated in [before, after] {
            if stated.cid == root {
                let text = format!("revision {} of commit {root}, which has {rev}", stated.rev);
                let finding =
                    self.found(&rule::STATED_REV, "getLatestCommit", &parameters, did, text);
                return (stated.rev != rev).then_some(finding);
            }
            if stated.rev == rev {
                let text = format!(
                    "revision {rev} is commit {root} here and {} in getLatestCommit",
                    stated.cid
                );
                return Some(self.found(&rule::OTHER_COMMIT, "getRepo", &parameters, did, text));
            }
        }
        let text = format!(
            "revision {rev}, but getLatestCommit has {} and then {}",
            before.rev, after.rev
        );
        let is_between = before.rev < rev && rev < after.rev;
        (!is_between).then(|| self.found(&rule::STALE_REPO, "getRepo", &parameters, did, text))
    }

    /// `getRepo`, verified.
    async fn repo(&mut self, did: &str, round: &mut Round) -> Option<ProvedRepo> {
        let method = "getRepo";
        let parameters = [("did", did)];
        let limits = Limits { max_bytes: self.options.max_repo_bytes, ..Limits::REPOSITORY };
        let (body, is_too_long) = match self.host.ask(method, &parameters, &limits).await {
            Reply::Elsewhere | Reply::Failed => return None,
            Reply::Body(body) => (body, false),
            Reply::TooLong(body) => (body, true),
            Reply::Refused(refusal) if refusal.is_no_method() => {
                self.missing(method, &parameters, &refusal);
                return None;
            }
            Reply::Refused(refusal) => {
                round.push(self.refused(method, did, &refusal));
                return None;
            }
        };
        let body = if is_too_long { whole_sections(&body) } else { &body };
        let verified = self.with_keys(did, |key| {
            let options = repository::Options::default();
            repository::verify(body, Some(did), key, &options).map(|whole| proved(&whole))
        });
        match (verified.await?, is_too_long) {
            (Ok(repo), false) => repo,
            (Ok(_), true) => {
                let text = format!(
                    "the archive goes on after the repository, beyond {} bytes",
                    self.options.max_repo_bytes
                );
                round.push(self.found(&rule::ENDLESS_REPO, method, &parameters, did, text));
                None
            }
            (Err(_), true) => {
                let text = format!("more than {} bytes", self.options.max_repo_bytes);
                self.host.note(self.found(&rule::REPO_UNREAD, method, &parameters, did, text));
                None
            }
            (Err(rejection), false) => {
                let command = format!("wireproof verify {did} --from {}", origin(self.host));
                let finding = Finding::of_data(rejection.code(), method, rejection.to_string());
                round.push(finding.about(did).seen_by(command));
                None
            }
        }
    }

    /// `getBlocks` of the newest commit; returns its revision.
    async fn commit_block(&mut self, did: &str, cid: Cid, round: &mut Round) -> Option<Tid> {
        let data = self.block(did, cid, round).await?;
        let verified = self.with_keys(did, |key| {
            let verified = commit::verify(&data, key);
            verified
                .map(|commit| Tid::parse(commit.rev).ok())
                .map_err(|why| (why.code(), why.to_string()))
        });
        match verified.await? {
            Ok(rev) => rev,
            Err((code, text)) => {
                let cid = cid.to_string();
                let command = self.host.curl("getBlocks", &[("did", did), ("cids", &cid)]);
                round.push(Finding::of_data(code, "getBlocks", text).about(did).seen_by(command));
                None
            }
        }
    }

    /// `getBlocks` of one block.
    async fn block(&mut self, did: &str, cid: Cid, round: &mut Round) -> Option<Vec<u8>> {
        let method = "getBlocks";
        let text = cid.to_string();
        let parameters = [("did", did), ("cids", text.as_str())];
        let body = match self.host.ask(method, &parameters, &Limits::SLICE).await {
            Reply::Elsewhere | Reply::Failed => return None,
            Reply::Body(body) => body,
            Reply::Refused(refusal) if refusal.is_no_method() => {
                self.missing(method, &parameters, &refusal);
                return None;
            }
            Reply::Refused(refusal) => {
                round.push(self.found(
                    &rule::BLOCK_MISSING,
                    method,
                    &parameters,
                    did,
                    refusal.to_string(),
                ));
                return None;
            }
            Reply::TooLong(_) => {
                let text = "the answer is longer than 64 MiB".to_owned();
                round.push(self.found(&rule::BLOCK_EXTRA, method, &parameters, did, text));
                return None;
            }
        };
        let archive = match car::read(&body, &car::Options::default()) {
            Ok(archive) => archive,
            Err(error) => {
                let finding = Finding::of_data(error.fault.code(), method, error.to_string());
                round.push(finding.about(did).seen_by(self.host.curl(method, &parameters)));
                return None;
            }
        };
        if let Some(extra) = archive.blocks.iter().find(|block| block.cid != cid.as_cid_ref()) {
            let text = format!("the answer has the block {}", extra.cid);
            round.push(self.found(&rule::BLOCK_EXTRA, method, &parameters, did, text));
        }
        let is_it = |block: &&car::Block<'_>| {
            block.cid == cid.as_cid_ref() && block.proof == HashProof::Checked
        };
        let Some(block) = archive.blocks.iter().find(is_it) else {
            let text = format!("the answer lacks the block {cid}");
            round.push(self.found(&rule::BLOCK_MISSING, method, &parameters, did, text));
            return None;
        };
        Some(block.data.to_vec())
    }

    /// `getRecord` of some records of the repository, and of one that it does not have.
    async fn records(&mut self, did: &str, repo: &ProvedRepo, round: &mut Round) {
        let absent = (ABSENT.to_owned(), None);
        let present = repo.records.iter().map(|(path, cid)| (path.clone(), Some(*cid)));
        for (path, expected) in present.chain([absent]).collect::<Vec<_>>() {
            let Some(finding) = self.record(did, repo, &path, expected).await else { continue };
            round.push(finding);
            return;
        }
    }

    async fn record(
        &mut self,
        did: &str,
        repo: &ProvedRepo,
        path: &str,
        expected: Option<Cid>,
    ) -> Option<Finding> {
        let method = "getRecord";
        let (collection, rkey) = path.split_once('/')?;
        let parameters = [("did", did), ("collection", collection), ("rkey", rkey)];
        let body = match self.host.ask(method, &parameters, &Limits::SLICE).await {
            Reply::Body(body) => body,
            Reply::Refused(refusal) if refusal.is_no_method() => {
                self.missing(method, &parameters, &refusal);
                return None;
            }
            Reply::Refused(refusal) => {
                let text = format!("the repository has {path}: {refusal}");
                return expected
                    .map(|_| self.found(&rule::OTHER_RECORD, method, &parameters, did, text));
            }
            _ => return None,
        };
        let verified = self.with_keys(did, |key| {
            let proof = record::verify(&body, path, Some(did), key, &record::Options::default());
            proof.map(|proof| (proof.root(), proof.record().map(|(cid, _)| cid)))
        });
        match verified.await? {
            Ok((root, record)) if root == repo.root && record != expected => {
                let text = format!(
                    "{path} of commit {root} is {record:?} here and {expected:?} in getRepo"
                );
                Some(self.found(&rule::OTHER_RECORD, method, &parameters, did, text))
            }
            Ok(_) => None,
            Err(rejection) => {
                let text = format!("{path}: {rejection}");
                let finding = Finding::of_data(rejection.code(), method, text).about(did);
                Some(finding.seen_by(self.host.curl(method, &parameters)))
            }
        }
    }

    /// Verifies with the keys of the account, earlier ones too: `None` if it has none.
    async fn with_keys<T, E: HasCode>(
        &mut self,
        did: &str,
        verify: impl Fn(&PublicKey) -> Result<T, E>,
    ) -> Option<Result<T, E>> {
        let identity = self.identities.get(did).await?;
        let first = verify(identity.keys.first()?);
        match &first {
            Err(error) if error.has_code().starts_with("signature/") => {}
            _ => return Some(first),
        }
        let identity = self.identities.with_history(did).await?;
        let later = identity.keys.iter().skip(1).map(&verify).find(Result::is_ok);
        Some(later.unwrap_or(first))
    }

    /// An inactive account has no repository here.
    async fn judge_inactive(&self, did: &str) {
        let method = "getRepo";
        let parameters = [("did", did)];
        let limits = Limits { max_bytes: self.options.max_repo_bytes, ..Limits::REPOSITORY };
        let reply = self.host.ask(method, &parameters, &limits).await;
        let is_served = matches!(reply, Reply::Body(_) | Reply::TooLong(_));
        // It may be active again.
        if is_served
            && let Ok(Some(status)) = self.status(did).await
            && !status.active
        {
            let text = format!("the account is {}", status.status.as_deref().unwrap_or("inactive"));
            self.host.note(self.found(&rule::SERVED_INACTIVE, method, &parameters, did, text));
        }
    }

    /// A status of an account that cannot exist here.
    pub(crate) async fn judge_unknown(&self) {
        let method = "getRepoStatus";
        let parameters = [("did", UNKNOWN_DID)];
        let reply = self.host.ask(method, &parameters, &Limits::DOCUMENT).await;
        if let Reply::Body(body) = reply
            && let Ok(status) = answers::status(&body)
            && status.active
        {
            let text = "the account is active, and nobody has it".to_owned();
            self.host.note(self.found(&rule::ANY_ACCOUNT, method, &parameters, UNKNOWN_DID, text));
        }
    }

    /// A method that the host does not have: relays need only lists and streams.
    fn missing(&self, method: &'static str, parameters: &Parameters<'_>, refusal: &Refusal) {
        if !self.is_relay || matches!(method, "getRepoStatus" | "getLatestCommit") {
            let finding = Finding::of(&rule::NO_METHOD, method, refusal.to_string());
            self.host.note(finding.seen_by(self.host.curl(method, parameters)));
        }
    }

    fn refused(&self, method: &'static str, did: &str, refusal: &Refusal) -> Finding {
        self.found(&rule::REFUSED_REPO, method, &[("did", did)], did, refusal.to_string())
    }

    fn found(
        &self,
        rule: &Rule,
        method: &'static str,
        parameters: &Parameters<'_>,
        did: &str,
        text: String,
    ) -> Finding {
        Finding::of(rule, method, text).about(did).seen_by(self.host.curl(method, parameters))
    }
}

fn is_future(rev: Tid) -> bool {
    rev.micros() > now_micros() + FUTURE_WINDOW_MICROS
}

/// An error with a stable code.
trait HasCode {
    fn has_code(&self) -> &'static str;
}

impl HasCode for RepositoryRejection {
    fn has_code(&self) -> &'static str {
        self.code()
    }
}

impl HasCode for (&'static str, String) {
    fn has_code(&self) -> &'static str {
        self.0
    }
}

/// The commit of a verified repository, and its first and its middle record.
fn proved(whole: &repository::WholeRepository<'_>) -> Option<ProvedRepo> {
    let rev = Tid::parse(whole.commit().rev).ok()?;
    let middle = whole.tree().records / 2;
    let (mut walk, mut number, mut records) = (whole.walk(&TreeLimits::default()), 0, Vec::new());
    while let Some(Ok(step)) = walk.next() {
        let Step::Record { key, value } = step else { continue };
        if number == 0 || number == middle {
            let path = String::from_utf8(key.to_vec()).ok();
            records.extend(path.zip(value.to_cid()));
        }
        if number >= middle {
            break;
        }
        number += 1;
    }
    Some(ProvedRepo { root: whole.root(), rev, records })
}

/// The beginning of an archive up to the last section that is complete.
pub(crate) fn whole_sections(archive: &[u8]) -> &[u8] {
    let mut end = 0;
    while let Some(next) = section_end(archive, end) {
        end = next;
    }
    &archive[..end]
}

/// The end of the section that starts at `start`; `None` if it is not complete.
fn section_end(archive: &[u8], start: usize) -> Option<usize> {
    let prefix = archive.get(start..)?.iter().take(MAX_VARINT_BYTES);
    let len = prefix.clone().position(|byte| *byte < 0x80)? + 1;
    let low = |(at, byte): (usize, &u8)| u64::from(byte & 0x7f) << (7 * at);
    let data: u64 = prefix.take(len).enumerate().map(low).sum();
    let end = start.checked_add(len)?.checked_add(usize::try_from(data).ok()?)?;
    (data > 0 && end <= archive.len()).then_some(end)
}

pub(crate) fn origin(host: &Host) -> String {
    host.url.origin().ascii_serialization()
}

const MAX_ROUNDS: u32 = 3;
const ROUND_DELAY: Duration = Duration::from_millis(700);
/// As the verdicts on events have it.
const FUTURE_WINDOW_MICROS: u64 = 5 * 60 * 1_000_000;
/// A path at which no account has a record: no key of this time exists.
const ABSENT: &str = "app.bsky.feed.post/2222222222222";
/// The hash of no operation: an account that nobody has.
const UNKNOWN_DID: &str = "did:plc:222222222222222222222222";
/// 5 bytes of 7 bits are 32 GiB.
const MAX_VARINT_BYTES: usize = 5;

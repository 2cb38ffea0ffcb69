//! Made records, answers and damages of blobs, whose verdicts an oracle knows from how they were made.
//!
//! The oracle reads no record, computes no hash and asks no host: it knows which blob every made map was meant to name, whether the
//! host sends the content or something else, and how the stored file was changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use archive::{Archive, VerifyOptions};
use codec::cbor::{self, Arena, ItemCounts};
use codec::cid::Codec;
use codec::{Cid, json};
use net::http::Limits;
use simnet::account::{Account, AccountHistory};
use simnet::blob_account::{BlobAccount, archive_of_records};
use simnet::block::{Block, UnhashedBlock};
use simnet::random::{DEFAULT_SEED, Random, Seed};
use simnet::servers::{RequestLimit, Simulation, Spec};
use simnet::time::START_MICROS;
use tokio::runtime::Runtime;
use wireproof_backfill::{BlobFetchOptions, BlobFinding};

use super::{check, fetch, open, options};

/// An answer of the host for a blob.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Answer {
    Content,
    OneBitOther,
    Cut,
    Longer,
    Nothing,
    AnotherBlob,
    /// It says that it does not have it.
    NotFound,
    /// The content, which is larger than the limit.
    TooLarge,
}

impl Answer {
    /// Wrong ones for any blob.
    const WRONG: [Self; 3] = [Self::Nothing, Self::AnotherBlob, Self::NotFound];
    /// Wrong ones for a blob within the limit.
    const ALTERED: [Self; 3] = [Self::OneBitOther, Self::Cut, Self::Longer];
}

/// A change of a stored file.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Damage {
    Nothing,
    OneBitOther,
    Cut,
    Longer,
    /// Another blob of the same size.
    Replaced,
    Deleted,
}

impl Damage {
    const ALL: [Self; 6] =
        [Self::Nothing, Self::OneBitOther, Self::Cut, Self::Longer, Self::Replaced, Self::Deleted];

    /// The verdict of a check, with hashes or by sizes alone.
    fn code(self, hashes: bool) -> Option<&'static str> {
        match self {
            Self::Nothing => None,
            Self::OneBitOther | Self::Replaced => hashes.then_some("blob/bytes"),
            Self::Cut | Self::Longer => Some("blob/bytes"),
            Self::Deleted => Some("blob/missing"),
        }
    }
}

/// A blob, and what happens to it.
#[derive(Clone, Debug)]
struct Made {
    cid: Cid,
    content: Vec<u8>,
    answer: Answer,
    damage: Damage,
}

impl Made {
    fn new(content: Vec<u8>, random: &mut Random) -> Self {
        let answer = match random.below(6) {
            0 => *random.pick(&Answer::WRONG),
            _ if content.len() > MAX_BLOB => Answer::TooLarge,
            1 => *random.pick(&Answer::ALTERED),
            _ => Answer::Content,
        };
        let damage = *random.pick(&Damage::ALL);
        Self { cid: Cid::of(Codec::Raw, &content), content, answer, damage }
    }

    /// The verdict of a fetch; `None` if the blob is stored.
    fn code(&self) -> Option<&'static str> {
        match self.answer {
            Answer::Content => None,
            Answer::NotFound => Some("blob/not-found"),
            Answer::TooLarge => Some("blob/too-large"),
            Answer::Longer if self.content.len() == MAX_BLOB => Some("blob/too-large"),
            _ => Some("blob/bytes"),
        }
    }

    /// The bytes that the host sends, if any.
    fn sent(&self, random: &mut Random) -> Option<Vec<u8>> {
        let content = &self.content;
        match self.answer {
            Answer::Content | Answer::TooLarge => Some(content.clone()),
            Answer::OneBitOther => Some(with_other_bit(content, random)),
            Answer::Cut => Some(content[..random.below(content.len() as u64) as usize].to_vec()),
            Answer::Longer => Some([content, &[0][..]].concat()),
            Answer::Nothing => Some(Vec::new()),
            Answer::AnotherBlob => Some(random.bytes32().to_vec()),
            Answer::NotFound => None,
        }
    }

    fn apply_damage(&self, file: &Path, random: &mut Random) {
        let content = &self.content;
        let other = match self.damage {
            Damage::Nothing => return,
            Damage::Deleted => return fs::remove_file(file).unwrap(),
            Damage::OneBitOther => with_other_bit(content, random),
            Damage::Cut => content[..random.below(content.len() as u64) as usize].to_vec(),
            Damage::Longer => [content, &content[..1]].concat(),
            Damage::Replaced => content.iter().map(|byte| !byte).collect(),
        };
        fs::write(file, other).unwrap();
    }
}

fn with_other_bit(content: &[u8], random: &mut Random) -> Vec<u8> {
    let mut other = content.to_vec();
    *other.get_mut(random.below(content.len() as u64) as usize).unwrap() ^= 1 << random.below(8);
    other
}

/// How a record has the CID of a blob.
#[derive(Clone, Copy, Debug)]
enum Mention {
    // These name it.
    Reference,
    WithoutSize,
    OtherSize,
    WithMore,
    FirstForm,
    // These do not.
    OtherType,
    TextInPlaceOfLink,
    WithoutMediaType,
    MediaTypeOfOtherKind,
    FirstFormWithMore,
    FirstFormWithLink,
    DagCborLink,
    LinkAlone,
    TextAlone,
    InsideAnotherReference,
}

impl Mention {
    const NAMES: [Self; 5] =
        [Self::Reference, Self::WithoutSize, Self::OtherSize, Self::WithMore, Self::FirstForm];
    const OTHERS: [Self; 10] = [
        Self::OtherType,
        Self::TextInPlaceOfLink,
        Self::WithoutMediaType,
        Self::MediaTypeOfOtherKind,
        Self::FirstFormWithMore,
        Self::FirstFormWithLink,
        Self::DagCborLink,
        Self::LinkAlone,
        Self::TextAlone,
        Self::InsideAnotherReference,
    ];

    fn json(self, blob: &Made) -> String {
        let (cid, size) = (blob.cid, blob.content.len());
        let dag_cbor = Cid::from_digest(Codec::DagCbor, cid.digest());
        let (kind, mime) = (r#""$type":"blob""#, r#""mimeType":"image/png""#);
        let link = format!(r#""ref":{{"$link":"{cid}"}}"#);
        match self {
            Self::Reference => format!(r#"{{{kind},{link},{mime},"size":{size}}}"#),
            Self::WithoutSize => format!("{{{kind},{link},{mime}}}"),
            Self::OtherSize => format!(r#"{{{kind},{link},{mime},"size":{}}}"#, size + 1),
            Self::WithMore => format!(r#"{{{kind},{link},{mime},"size":{size},"more":[1]}}"#),
            Self::FirstForm => format!(r#"{{"cid":"{cid}",{mime}}}"#),
            Self::OtherType => format!(r#"{{"$type":"image",{link},{mime},"size":{size}}}"#),
            Self::TextInPlaceOfLink => format!(r#"{{{kind},"ref":"{cid}",{mime}}}"#),
            Self::WithoutMediaType => format!(r#"{{{kind},{link},"size":{size}}}"#),
            Self::MediaTypeOfOtherKind => format!(r#"{{{kind},{link},"mimeType":7}}"#),
            Self::FirstFormWithMore => format!(r#"{{"cid":"{cid}",{mime},"size":{size}}}"#),
            Self::FirstFormWithLink => format!(r#"{{"cid":{{"$link":"{cid}"}},{mime}}}"#),
            Self::DagCborLink => {
                format!(r#"{{{kind},"ref":{{"$link":"{dag_cbor}"}},{mime},"size":{size}}}"#)
            }
            Self::LinkAlone => format!(r#"{{"$link":"{cid}"}}"#),
            Self::TextAlone => format!(r#""{cid}""#),
            Self::InsideAnotherReference => {
                // The outer map names what every record of the test names.
                let inner = Self::Reference.json(blob);
                format!(r#"{{{kind},"ref":{{"$link":"{}"}},{mime},"more":{inner}}}"#, common().cid)
            }
        }
    }
}

/// The blob that every record names.
fn common() -> Made {
    let content = b"the blob that every record names".to_vec();
    let (answer, damage) = (Answer::Content, Damage::Nothing);
    Made { cid: Cid::of(Codec::Raw, &content), content, answer, damage }
}

/// The blob without bytes, whose file is deleted.
fn empty() -> Made {
    Made { cid: Cid::of(Codec::Raw, &[]), content: Vec::new(), damage: Damage::Deleted, ..common() }
}

/// A value inside some lists and maps.
fn nested(value: String, random: &mut Random) -> String {
    (0..random.below(4)).fold(value, |value, _| match random.below(2) {
        0 => format!(r#"[null,{value},"text"]"#),
        _ => format!(r#"{{"$type":"app.test.part","part":{value}}}"#),
    })
}

/// An account, with the first record that names each blob, as the oracle knows it.
struct MadeAccount {
    account: Account,
    archive: Vec<u8>,
    named: BTreeMap<Cid, (String, Made)>,
}

impl MadeAccount {
    fn new(number: u64, shared: &[Made], random: &mut Random) -> Self {
        let seed = Seed::new(DEFAULT_SEED, &format!("account {number} with made blobs"));
        let account = Account::new(seed, AccountHistory::Full(1), START_MICROS);
        let mut named: BTreeMap<Cid, (String, Made)> = BTreeMap::new();
        let mut records = Vec::new();
        let mut keys: Vec<usize> = (0..RECORDS).collect();
        random.shuffle(&mut keys);
        for key in keys {
            let path = format!("app.test.note/note{key:04}");
            let mut blobs = vec![common()];
            let mut values = vec![Mention::Reference.json(&common())];
            for _ in 0..random.below(5) {
                let blob = match random.below(10) {
                    0 => random.pick(shared).clone(),
                    1 => match named.values().nth(random.below(1 + named.len() as u64) as usize) {
                        Some((_, again)) => again.clone(),
                        None => common(),
                    },
                    _ => made_blob(random),
                };
                let mention = if random.chance(2, 3) {
                    blobs.push(blob.clone());
                    *random.pick(&Mention::NAMES)
                } else {
                    *random.pick(&Mention::OTHERS)
                };
                values.push(nested(mention.json(&blob), random));
            }
            random.shuffle(&mut values);
            records.push((path.clone(), record(&values)));
            for blob in blobs {
                let (first, _) = named.entry(blob.cid).or_insert_with(|| (path.clone(), blob));
                *first = first.clone().min(path.clone());
            }
        }
        let archive = archive_of_records(&account, records);
        Self { account, archive, named }
    }

    fn did(&self) -> &str {
        self.account.did()
    }

    /// The account on its host, which sends this for its blobs.
    fn hosted(&self, mut sent: impl FnMut(&Made) -> Option<Vec<u8>>) -> BlobAccount {
        let blobs = self.named.iter().filter_map(|(cid, (_, blob))| Some((*cid, sent(blob)?)));
        let (did, key) = (self.did().to_owned(), self.account.key().did_key());
        BlobAccount::new(did, key, self.archive.clone(), blobs.collect())
    }
}

fn made_blob(random: &mut Random) -> Made {
    let len = match random.below(8) {
        0 => random.between(MAX_BLOB as u64 + 1, 2 * MAX_BLOB as u64),
        1 => MAX_BLOB as u64,
        // With 16 bytes, no two are the same.
        _ => random.between(16, 300),
    };
    let mut content = vec![0; len as usize];
    content.chunks_mut(32).for_each(|part| part.copy_from_slice(&random.bytes32()[..part.len()]));
    Made::new(content, random)
}

/// A record with these values, in DAG-CBOR.
fn record(values: &[String]) -> Block {
    let text = format!(r#"{{"$type":"app.test.note","values":[{}]}}"#, values.join(","));
    let arena = Arena::new();
    let data = cbor::encode(&json::decode(&text, &arena).unwrap()).unwrap();
    UnhashedBlock { data, counts: ItemCounts::default() }.into_block()
}

/// The made accounts on their hosts, and an archive.
struct Scene {
    network: Simulation,
    folder: tempfile::TempDir,
    archive: Archive,
    accounts: Vec<MadeAccount>,
}

/// A verdict: account, first record, CID, code.
type Verdict = (String, String, String, &'static str);

impl Scene {
    fn new(random: &mut Random) -> Self {
        // A limit that hosts announce is used from the first request on.
        let limit = RequestLimit { requests: 30_000, window: Duration::from_secs(60) };
        let spec = Spec {
            accounts: 1,
            records: 1,
            jetstreams: 0,
            pds: ACCOUNTS,
            request_limit: Some(limit),
            ..Spec::default()
        };
        let network = Simulation::start(spec).unwrap();
        let mut shared: Vec<Made> = (0..40).map(|_| made_blob(random)).collect();
        shared.push(empty());
        let accounts: Vec<_> =
            (0..ACCOUNTS as u64).map(|number| MadeAccount::new(number, &shared, random)).collect();
        let folder = tempfile::tempdir().unwrap();
        let archive = open(folder.path());
        Self { network, folder, archive, accounts }
    }

    fn serve(&self, mut sent: impl FnMut(&Made) -> Option<Vec<u8>>) {
        // Hosts agree on the content of a blob that accounts share.
        let mut of_blobs: HashMap<Cid, Option<Vec<u8>>> = HashMap::new();
        for (pds, account) in self.accounts.iter().enumerate() {
            let sent = |blob: &Made| of_blobs.entry(blob.cid).or_insert_with(|| sent(blob)).clone();
            self.network.serve_blob_account(pds, account.hosted(sent));
        }
    }

    fn options(&self) -> BlobFetchOptions {
        let dids: Vec<&str> = self.accounts.iter().map(MadeAccount::did).collect();
        let mut options = options(&self.network, &dids);
        options.limits = Limits { max_bytes: MAX_BLOB as u64, ..options.limits };
        options.concurrent_blobs = 32;
        options.max_rate = 500.0;
        options
    }

    /// The verdicts of the oracle on all blobs that accounts name.
    fn verdicts(&self, code: impl Fn(&Made) -> Option<&'static str>) -> BTreeSet<Verdict> {
        let of_account = |account: &MadeAccount| {
            let (did, named) = (account.did().to_owned(), account.named.clone());
            let blobs = named.into_values();
            blobs.map(move |(path, blob)| (did.clone(), path, blob)).collect::<Vec<_>>()
        };
        let blobs = self.accounts.iter().flat_map(of_account);
        blobs
            .filter_map(|(did, path, blob)| Some((did, path, blob.cid.to_string(), code(&blob)?)))
            .collect()
    }

    fn count(&self) -> u64 {
        self.verdicts(|_| Some("any")).len() as u64
    }

    fn file(&self, cid: &Cid) -> PathBuf {
        let part = format!("{:02x}", cid.digest()[0]);
        self.folder.path().join("blob_files").join(part).join(cid.to_string())
    }

    /// Every blob once.
    fn blobs(&self) -> BTreeMap<Cid, Made> {
        let named = self.accounts.iter().flat_map(|account| account.named.values());
        named.map(|(_, blob)| (blob.cid, blob.clone())).collect()
    }

    /// The CIDs of the rows that `archive verify` refuses, with their accounts, and the number of the others.
    fn proved(&self) -> (BTreeSet<(String, String)>, u64) {
        let mut refused = BTreeSet::new();
        let mut on_finding = |finding: archive::Finding| {
            let cid = finding.message.split([' ', ':']).next().unwrap().to_owned();
            assert!(refused.insert((finding.did.unwrap(), cid)), "{}", finding.message);
        };
        let options = VerifyOptions::default();
        let report = Runtime::new()
            .unwrap()
            .block_on(async { self.archive.verify(&options, &mut on_finding).await });
        (refused, report.unwrap().proved_blobs)
    }
}

fn found(findings: Vec<BlobFinding>) -> BTreeSet<Verdict> {
    let count = findings.len();
    let found: BTreeSet<Verdict> = findings
        .into_iter()
        .map(|finding| (finding.did, finding.record.unwrap(), finding.cid.unwrap(), finding.code))
        .collect();
    assert_eq!(found.len(), count, "every finding once");
    found
}

/// Asserts that two sets of verdicts are the same, and shows the differences alone.
fn assert_same(found: &BTreeSet<Verdict>, expected: &BTreeSet<Verdict>) {
    let (more, less) = (found.difference(expected), expected.difference(found));
    let differences: Vec<_> =
        more.map(|of| ("found", of)).chain(less.map(|of| ("not found", of))).collect();
    assert!(differences.is_empty(), "{differences:#?}");
}

#[test]
fn verdicts_on_made_blobs_are_those_of_the_oracle() {
    let random = &mut Seed::new(DEFAULT_SEED, "made blobs").stream(0);
    let scene = Scene::new(random);
    let count = scene.count();
    assert!(count >= 2_000, "{count} blobs");

    scene.serve(|blob| blob.sent(random));
    let (summary, findings) = fetch(&scene.archive, scene.options());
    let refused = scene.verdicts(|blob| blob.code());
    assert_same(&found(findings), &refused);
    assert_eq!(summary.blob_count, count);
    assert_eq!(summary.fetched_count + summary.present_count, count - refused.len() as u64);
    for (cid, blob) in scene.blobs() {
        let stored = fs::read(scene.file(&cid)).ok();
        assert_eq!(stored, blob.code().is_none().then_some(blob.content), "{cid}");
    }

    let is_stored = |blob: &Made| blob.answer == Answer::Content;
    scene.blobs().values().filter(|blob| is_stored(blob)).for_each(|blob| {
        blob.apply_damage(&scene.file(&blob.cid), random);
    });
    for hashes in [false, true] {
        let (_, findings) = check(&scene.archive, hashes);
        let code = |blob: &Made| {
            if is_stored(blob) { blob.damage.code(hashes) } else { Some("blob/missing") }
        };
        assert_same(&found(findings), &scene.verdicts(code));
    }
    let damaged = scene.verdicts(|blob| blob.damage.code(true).filter(|_| is_stored(blob)));
    let rows = count - refused.len() as u64;
    let (refused, proved) = scene.proved();
    let damaged: BTreeSet<(String, String)> =
        damaged.into_iter().map(|(did, _, cid, _)| (did, cid)).collect();
    assert_eq!((refused, proved), (damaged.clone(), rows - damaged.len() as u64));

    scene.serve(|blob| Some(blob.content.clone()));
    let mut options = scene.options();
    options.hashes = true;
    options.limits.max_bytes = 2 * MAX_BLOB as u64;
    let (summary, findings) = fetch(&scene.archive, options);
    assert_eq!(findings, []);
    assert_eq!(summary.fetched_count + summary.present_count, count);
    assert_eq!(check(&scene.archive, true).1, []);
    assert_eq!(scene.proved(), (BTreeSet::new(), count));
}

/// Number of accounts, each on a host of its own.
const ACCOUNTS: usize = 8;

/// Number of records of an account.
const RECORDS: usize = 240;

/// The limit of a blob in bytes.
const MAX_BLOB: usize = 1_000;

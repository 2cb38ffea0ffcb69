//! Object stores that misbehave: a store without conditional puts is refused, and answers with other bytes end no process.
//! Addresses, and the environment's settings for them.

use std::fmt;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use async_trait::async_trait;
use codec::Cid;
use codec::cid::Codec;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt, StreamExt, TryStreamExt};
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::{
    CopyOptions, Error, GetOptions, GetRange, GetResult, GetResultPayload, ListResult,
    MultipartUpload, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutMultipartOptions,
    PutOptions, PutPayload, PutResult, Result, UploadPart,
};
use sha2::Digest;
use wireproof_archive::{
    Archive, ArchiveError, ArchiveFault, ArchivedEvent, Ledger, PageRow, Storage, StoreProblem,
    Table, VerifyOptions, WorkId,
};

/// The fault of a store in memory.
#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Puts replace existing objects.
    IgnoresConditions,
    /// Every range has a byte less than it says.
    ShortRanges,
    /// A put is carried out, and its answer is lost.
    LosesAnswers,
    /// None but the age of all objects, in hours.
    Aged(u64),
    /// None but the time of puts, whose bytes are counted.
    Slow(&'static PutBytes),
    /// So many requests for an entry of a log find nothing, or lists leave it out.
    Forgets(&'static str, &'static AtomicU32),
}

/// The bytes of the puts under way, and the most so far.
#[derive(Debug)]
struct PutBytes {
    now: AtomicU64,
    peak: AtomicU64,
}

impl PutBytes {
    /// Counts the bytes of a put that takes a while.
    async fn count(&self, payload: &PutPayload) {
        let bytes = payload.content_length() as u64;
        let now = self.now.fetch_add(bytes, Relaxed) + bytes;
        self.peak.fetch_max(now, Relaxed);
        tokio::time::sleep(Duration::from_millis(5)).await;
        self.now.fetch_sub(bytes, Relaxed);
    }
}

#[derive(Debug)]
struct SlowUpload {
    upload: Box<dyn MultipartUpload>,
    bytes: &'static PutBytes,
}

#[async_trait]
impl MultipartUpload for SlowUpload {
    fn put_part(&mut self, part: PutPayload) -> UploadPart {
        let bytes = self.bytes;
        let put = self.upload.put_part(part.clone());
        Box::pin(async move {
            bytes.count(&part).await;
            put.await
        })
    }

    async fn complete(&mut self) -> Result<PutResult> {
        self.upload.complete().await
    }

    async fn abort(&mut self) -> Result<()> {
        self.upload.abort().await
    }
}

#[derive(Debug)]
struct FaultyStore {
    objects: Arc<InMemory>,
    fault: Fault,
}

impl fmt::Display for FaultyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.fault)
    }
}

#[async_trait]
impl ObjectStore for FaultyStore {
    async fn put_opts(
        &self,
        path: &Path,
        payload: PutPayload,
        mut options: PutOptions,
    ) -> Result<PutResult> {
        if let Fault::IgnoresConditions = self.fault {
            options.mode = PutMode::Overwrite;
        }
        if let Fault::Slow(bytes) = self.fault {
            bytes.count(&payload).await;
        }
        let stored = self.objects.put_opts(path, payload, options).await?;
        match self.fault {
            Fault::LosesAnswers => {
                Err(Error::Generic { store: "test", source: "the connection is closed".into() })
            }
            _ => Ok(stored),
        }
    }

    async fn put_multipart_opts(
        &self,
        path: &Path,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        let upload = self.objects.put_multipart_opts(path, options).await?;
        Ok(match self.fault {
            Fault::Slow(bytes) => Box::new(SlowUpload { upload, bytes }),
            _ => upload,
        })
    }

    async fn get_opts(&self, path: &Path, options: GetOptions) -> Result<GetResult> {
        if self.forgets(path) {
            return Err(Error::NotFound { path: path.to_string(), source: "test".into() });
        }
        let is_cut = matches!(self.fault, Fault::ShortRanges)
            && matches!(options.range, Some(GetRange::Bounded(_)));
        let result = self.objects.get_opts(path, options).await?;
        if !is_cut {
            return Ok(result);
        }
        let (meta, range) = (result.meta.clone(), result.range.clone());
        let attributes = result.attributes.clone();
        let bytes = result.bytes().await?;
        let cut = bytes.slice(..bytes.len() - 1);
        let payload = GetResultPayload::Stream(async { Ok(cut) }.into_stream().boxed());
        Ok(GetResult { payload, meta, range, attributes })
    }

    fn delete_stream(
        &self,
        paths: BoxStream<'static, Result<Path>>,
    ) -> BoxStream<'static, Result<Path>> {
        self.objects.delete_stream(paths)
    }

    fn list(&self, prefix: Option<&Path>) -> BoxStream<'static, Result<ObjectMeta>> {
        let age = Duration::from_secs(match self.fault {
            Fault::Aged(hours) => hours * 3_600,
            _ => 0,
        });
        let aged = move |mut object: ObjectMeta| {
            object.last_modified -= age;
            object
        };
        let listed = self.objects.list(prefix).map_ok(aged).collect::<Vec<_>>();
        let listed = listed.now_or_never().expect("a store in memory");
        let is_kept =
            |object: &Result<ObjectMeta>| !object.as_ref().is_ok_and(|o| self.forgets(&o.location));
        let kept: Vec<_> = listed.into_iter().filter(is_kept).collect();
        futures_util::stream::iter(kept).boxed()
    }

    async fn list_with_delimiter(&self, prefix: Option<&Path>) -> Result<ListResult> {
        self.objects.list_with_delimiter(prefix).await
    }

    async fn copy_opts(&self, from: &Path, to: &Path, options: CopyOptions) -> Result<()> {
        self.objects.copy_opts(from, to, options).await
    }
}

impl FaultyStore {
    /// Whether a request is one that finds nothing.
    fn forgets(&self, path: &Path) -> bool {
        let Fault::Forgets(name, left) = self.fault else { return false };
        let take = |left: u32| left.checked_sub(1);
        path.as_ref().ends_with(name) && left.fetch_update(Relaxed, Relaxed, take).is_ok()
    }
}

fn archive(fault: Fault, objects: Arc<InMemory>) -> Archive {
    Archive::new(Storage::of_objects(Arc::new(FaultyStore { objects, fault }), Path::from("root")))
}

async fn seal(archive: &Archive, number: i64) -> std::result::Result<(), ArchiveError> {
    let event = ArchivedEvent {
        did: Some("did:web:alice.test"),
        arrival: number,
        host: "relay.test",
        seq: Some(number),
        kind: "",
        received: 1_782_864_000_000_000,
        verdict: "frame/truncated",
        key: None,
        judge: "test",
        frame: b"a frame",
    };
    let work = WorkId { writer: "test".to_owned(), number };
    archive.seal(vec![event], &work).await.map(drop)
}

fn problem(error: &ArchiveError) -> StoreProblem {
    match &error.fault {
        ArchiveFault::Store(fault) => fault.problem,
        _ => panic!("{error}"),
    }
}

#[tokio::test]
async fn a_store_that_ignores_conditions_gets_no_commit() {
    let archive = archive(Fault::IgnoresConditions, Arc::default());
    let error = seal(&archive, 1).await.unwrap_err();
    assert_eq!(problem(&error), StoreProblem::NoConditionalPut, "{error}");
    assert!(error.to_string().contains("use a store"), "{error}");
    assert_eq!(archive.table_stats(Table::Events).await.unwrap().versions, 0);
}

#[tokio::test(start_paused = true)]
async fn a_store_that_loses_every_answer_to_a_put_of_a_commit_has_it_once() {
    let objects = Arc::<InMemory>::default();
    let lossy = archive(Fault::LosesAnswers, objects);
    // The file of a table has its hash as its name, so it is looked for; the commit finds itself.
    seal(&lossy, 1).await.unwrap();
    seal(&lossy, 2).await.unwrap();
    seal(&lossy, 2).await.unwrap();
    let stats = lossy.table_stats(Table::Events).await.unwrap();
    assert_eq!((stats.versions, stats.rows), (2, 2));
}

#[tokio::test(start_paused = true)]
async fn a_row_of_a_ledger_whose_answer_is_lost_is_added_and_another_one_in_its_place_is_not() {
    let lossy = archive(Fault::LosesAnswers, Arc::default());
    let ledger = Ledger::new(&lossy, "monday").unwrap();
    let row = PageRow { sweep: 1, finished: 7, ..PageRow::default() };
    assert!(ledger.add_page("https://pds.test", &row).await.unwrap());
    assert!(ledger.add_page("https://pds.test", &row).await.unwrap());
    let other = PageRow { finished: 8, ..row.clone() };
    assert!(!ledger.add_page("https://pds.test", &other).await.unwrap());
    assert_eq!(ledger.pages("https://pds.test").await.unwrap(), [row]);
}

#[tokio::test]
async fn uploads_of_many_blobs_at_a_time_hold_a_bounded_number_of_bytes() {
    static BYTES: PutBytes = PutBytes { now: AtomicU64::new(0), peak: AtomicU64::new(0) };
    let objects = Arc::<InMemory>::default();
    let archive = archive(Fault::Slow(&BYTES), objects.clone());
    let blobs = (0..8_u8).flat_map(|number| [(number, 20 << 20), (number, 3 << 20)]);
    let puts = blobs.map(async |(number, len)| {
        let mut file = archive.stage_blob().unwrap();
        let content = vec![number; len];
        file.write_all(&content).unwrap();
        let cid = Cid::of(Codec::Raw, &content);
        assert!(archive.put_blob(&cid, file).await.unwrap());
        assert_eq!(archive.check_blob(&cid).await.unwrap(), Ok(len as u64));
    });
    futures_util::future::join_all(puts).await;
    let peak = BYTES.peak.load(Relaxed);
    assert!((16 << 20..=24 << 20).contains(&peak), "{peak} bytes");
}

#[tokio::test]
async fn ranges_that_are_too_short_are_an_error_and_no_panic() {
    let archive = archive(Fault::ShortRanges, Arc::default());
    seal(&archive, 1).await.unwrap();
    let error = archive.verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap_err();
    assert_eq!(problem(&error), StoreProblem::Malformed, "{error}");
    let Err(error) = read(&archive).await else { panic!("rows of a cut file") };
    assert_eq!(problem(&error), StoreProblem::Malformed, "{error}");
    assert!(error.file.starts_with("events/day=2026-07-01/"), "{error}");
}

#[tokio::test]
async fn what_processes_left_in_a_bucket_is_deleted_by_its_name_a_day_later_and_nothing_else() {
    let objects = Arc::<InMemory>::default();
    // Leftovers of a checked put, and of a file that was not committed. The others were never announced.
    let hash = data_encoding::HEXLOWER.encode(&sha2::Sha256::digest(b"left"));
    let file = format!("day=2026-07-01/{hash}.parquet");
    let other = format!("day=2026-07-01/{}.parquet", hash.replace('a', "b"));
    let left = [
        "root/staging/7d8ed2a0-6f2b-4a37-a5b4-3a1bd2a6e1c9".to_owned(),
        format!("root/events/{file}"),
        format!("root/uploads/events/{file}.upload"),
        format!("root/uploads/ops/{other}.upload"),
    ]
    .map(Path::from);
    let stay = [
        "root/staging/notes".to_owned(),
        "root/events/day=2026-07-01/orphan.parquet".to_owned(),
        format!("root/ops/{file}"),
        format!("root/ops/{other}"),
        format!("root/uploads/events/{file}.txt"),
    ]
    .map(Path::from);
    for path in left.iter().chain(&stay) {
        objects.put(path, PutPayload::from_static(b"left")).await.unwrap();
    }
    let paths = async || {
        let listed: Vec<_> = objects.list(None).try_collect().await.unwrap();
        listed.into_iter().map(|object| object.location).collect::<Vec<_>>()
    };
    let store = |fault| archive(fault, objects.clone());
    seal(&store(Fault::Aged(0)), 1).await.unwrap();
    let with_all = paths().await;
    for hours in [0, 23] {
        store(Fault::Aged(hours)).compact(0).await.unwrap();
        assert_eq!(paths().await, with_all, "{hours} hours");
    }
    store(Fault::Aged(25)).compact(0).await.unwrap();
    let kept: Vec<_> = with_all.into_iter().filter(|path| !left.contains(path)).collect();
    assert_eq!(paths().await, kept);
    store(Fault::Aged(25)).verify(&VerifyOptions::default(), &mut |_| ()).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_entry_that_a_store_forgets_for_a_moment_is_read_and_one_that_stays_away_is_an_error() {
    static LEFT: AtomicU32 = AtomicU32::new(0);
    let objects = Arc::<InMemory>::default();
    for number in 1..=3 {
        seal(&archive(Fault::Aged(0), objects.clone()), number).await.unwrap();
    }
    let paths = async || {
        let listed: Vec<_> = objects.list(None).try_collect().await.unwrap();
        listed.into_iter().map(|object| object.location).collect::<Vec<_>>()
    };
    let before = paths().await;
    for name in [
        "events/_delta_log/00000000000000000000.json",
        "events/_delta_log/00000000000000000001.json",
        "events/_delta_log/00000000000000000002.json",
    ] {
        let open = || archive(Fault::Forgets(name, &LEFT), objects.clone());
        for times in 1..=3 {
            LEFT.store(times, Relaxed);
            let stats = open().table_stats(Table::Events).await.unwrap();
            assert_eq!((stats.versions, stats.rows), (3, 3), "{name}, {times} times");
        }
        LEFT.store(u32::MAX, Relaxed);
        let error = open().compact(i64::MAX).await.unwrap_err();
        assert!(error.fault.code().is_some_and(|code| code.starts_with("archive/log-")), "{error}");
        let verified = open().verify(&VerifyOptions::default(), &mut |_| ()).await;
        assert!(verified.is_err(), "{name}");
        assert_eq!(paths().await, before, "{name}");
    }
}

async fn read(archive: &Archive) -> std::result::Result<(), ArchiveError> {
    let mut events = archive.events().await?;
    while events.next().await?.is_some() {}
    Ok(())
}

#[cfg(feature = "object-stores")]
#[test]
fn an_address_is_a_folder_or_a_prefix_of_a_bucket() {
    let key = ("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0");
    let variables = [
        ("AWS_ACCESS_KEY_ID", "ada"),
        ("AWS_SECRET_ACCESS_KEY", "secret"),
        ("AZURE_STORAGE_ACCOUNT_NAME", "ada"),
        key,
        ("GOOGLE_SKIP_SIGNATURE", "true"),
    ];
    for address in [
        "s3://history",
        "s3://history/relays/one/",
        "gs://history/relays/one",
        "az://history/relays/one",
        "abfss://history@ada.dfs.core.windows.net/relays/one",
    ] {
        let opened = open_with(address, &variables).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((opened.address(), opened.folder()), (address, None));
    }
    for address in [
        "s3://",
        "s3:///relays",
        "s3://two words/relays",
        "s3://history//relays",
        "s3://history/../relays",
        "http://history.example/relays",
        "ftp://history/relays",
    ] {
        let error = open_with(address, &variables).unwrap_err();
        assert!(matches!(error.fault, ArchiveFault::Address), "{address}: {error}");
        assert!(error.to_string().contains("s3://BUCKET/PREFIX"), "{error}");
    }
}

#[cfg(feature = "object-stores")]
#[test]
fn an_endpoint_without_tls_must_be_allowed() {
    let endpoint = ("AWS_ENDPOINT_URL", "http://127.0.0.1:1");
    let error = open_with("s3://history", &[endpoint]).unwrap_err();
    assert!(matches!(error.fault, ArchiveFault::Settings(_)), "{error}");
    assert!(error.to_string().contains("set AWS_ALLOW_HTTP=true"), "{error}");
    open_with("s3://history", &[endpoint, ("AWS_ALLOW_HTTP", "true")]).unwrap();
}

#[cfg(feature = "object-stores")]
#[test]
fn options_that_the_environment_has_not_are_named() {
    let error = open_with("az://history/relays", &[]).unwrap_err();
    assert!(matches!(error.fault, ArchiveFault::Settings(_)), "{error}");
    assert!(error.to_string().to_lowercase().contains("account"), "{error}");
}

#[cfg(feature = "object-stores")]
fn open_with(
    address: &str,
    variables: &[(&str, &str)],
) -> std::result::Result<Storage, ArchiveError> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    Storage::open_with(address, &variables.iter().map(owned).collect::<Vec<_>>())
}

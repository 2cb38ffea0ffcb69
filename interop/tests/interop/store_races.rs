//! Writers that race for one object and for the tables of an archive: conditional puts have one winner every time, and
//! no commit is lost.

use std::fmt::Display;
use std::sync::Arc;

use archive::{Archive, Table, VerifyOptions, WorkId};
use futures_util::future::join_all;
use object_store::aws::AmazonS3Builder;
use object_store::azure::MicrosoftAzureBuilder;
use object_store::{Error, ObjectStore, ObjectStoreExt, PutMode};
use tokio::sync::Barrier;
use wireproof_interop::azure::Azure;
use wireproof_interop::kit;
use wireproof_interop::s3::S3;

use crate::scaled;
use crate::stores::{ADDRESS, BUCKET, NOW, event, open_at, seqs};

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_writers_that_create_one_object_in_s3_exactly_one_wins() {
    let kit = kit!(S3);
    let s3 = S3::start(&kit, BUCKET).await;
    let variables = s3.variables();
    let client = || {
        let builder = AmazonS3Builder::new().with_bucket_name(BUCKET);
        let builder = variables.iter().fold(builder, |builder, (name, value)| {
            builder.with_config(name.to_ascii_lowercase().parse().expect("an option"), value)
        });
        Arc::new(builder.build().expect("a client")) as Arc<dyn ObjectStore>
    };
    race((0..WRITERS).map(|_| client()).collect(), scaled(30, 1_000)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_eight_writers_that_create_one_azure_blob_exactly_one_wins() {
    let kit = kit!(Azure);
    let azure = Azure::start(&kit, BUCKET).await;
    let variables = azure.variables();
    let client = || {
        let builder = MicrosoftAzureBuilder::new().with_container_name(BUCKET);
        let builder = variables.iter().fold(builder, |builder, (name, value)| {
            builder.with_config(name.to_ascii_lowercase().parse().expect("an option"), value)
        });
        Arc::new(builder.build().expect("a client")) as Arc<dyn ObjectStore>
    };
    race((0..WRITERS).map(|_| client()).collect(), scaled(30, 1_000)).await;
}

/// Creates one object after another, all clients at once.
async fn race(clients: Vec<Arc<dyn ObjectStore>>, rounds: usize) {
    let barrier = Arc::new(Barrier::new(clients.len()));
    for round in 0..rounds {
        let races = clients.iter().cloned().enumerate().map(|(writer, client)| {
            let (barrier, path) = (barrier.clone(), format!("race/{round}").into());
            tokio::spawn(async move {
                barrier.wait().await;
                let bytes = writer.to_string().into_bytes();
                client.put_opts(&path, bytes.into(), PutMode::Create.into()).await
            })
        });
        let results = join_all(races).await.into_iter().map(|result| result.expect("a task"));
        let (mut winners, mut others) = (Vec::new(), 0);
        for (writer, result) in results.enumerate() {
            match result {
                Ok(_) => winners.push(writer),
                Err(Error::AlreadyExists { .. } | Error::Precondition { .. }) => others += 1,
                Err(error) => panic!("round {round}, writer {writer}: {error}"),
            }
        }
        assert_eq!((winners.len(), others), (1, clients.len() - 1), "round {round}");
        let stored = clients[0].get(&format!("race/{round}").into()).await.expect("an object");
        let stored = stored.bytes().await.expect("its bytes");
        assert_eq!(stored, winners[0].to_string(), "round {round}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_writers_that_race_for_the_tables_in_s3_lose_no_commit() {
    let kit = kit!(S3);
    let s3 = S3::start(&kit, BUCKET).await;
    commit_at_once(|| open_at(ADDRESS, &s3.variables()), scaled(5, 125)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn eight_writers_that_race_for_the_tables_in_azure_lose_no_commit() {
    let kit = kit!(Azure);
    let azure = Azure::start(&kit, BUCKET).await;
    let address = format!("az://{BUCKET}/relays/one");
    let open = || open_at(&address, &azure.variables());
    commit_at_once(open, scaled(5, 125)).await;
    let archive = open();
    let (options, mut refuse) = (VerifyOptions::default(), |finding| panic!("{finding:?}"));
    let files = archive.verify(&options, &mut refuse).await.expect("the tables").files;
    let erased = archive.erase("did:web:bob.test", "deleted", NOW).await.expect("an erasure");
    assert_eq!(erased.files, files / 2);
    assert!(seqs(&archive).await.iter().all(|seq| seq % 2 == 0));
    let missing = open_at("az://elsewhere/relays", &azure.variables());
    assert_is_refused(&missing, "the bucket of the address does not exist").await;
    let mut wrong = azure.variables();
    wrong.retain(|(name, _)| name != "AZURE_STORAGE_ACCOUNT_KEY");
    wrong.push(("AZURE_STORAGE_ACCOUNT_KEY".to_owned(), "d3JvbmcgLSBzZWNyZXQ=".to_owned()));
    assert_is_refused(&open_at(&address, &wrong), "the object store refuses the credentials").await;
}

async fn assert_is_refused(archive: &Archive, text: impl Display) {
    let error = archive.table_stats(Table::Events).await.expect_err("no archive").to_string();
    assert!(error.contains(&text.to_string()), "{error}");
    assert!(!error.contains("d3Jvbm"), "{error}");
}

/// Commits by all writers at once, in as many rounds.
async fn commit_at_once(open: impl Fn() -> Archive, rounds: i64) {
    let writers = (0..WRITERS as i64).map(|writer| {
        let archive = open();
        tokio::spawn(async move {
            for number in 0..rounds {
                let seq = writer * rounds + number;
                let (frame, work) = (seq.to_be_bytes(), format!("writer {writer}"));
                let work = WorkId { writer: work, number };
                archive.seal(vec![event(seq, &frame)], &work).await.expect("a commit");
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.expect("a writer");
    }
    let archive = open();
    let commits = WRITERS as u64 * rounds as u64;
    let stats = archive.table_stats(Table::Events).await.expect("a log");
    assert_eq!((stats.versions, stats.files, stats.rows), (commits, commits, commits));
    assert_eq!(seqs(&archive).await, (0..commits as i64).collect::<Vec<_>>());
}

const WRITERS: usize = 8;

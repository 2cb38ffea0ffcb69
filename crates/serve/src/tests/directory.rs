//! Queries about accounts.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;

impl Serving {
    /// The status and the body of the answer to a query.
    pub(super) async fn query(&self, path: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request =
            format!("GET /xrpc/{path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await.unwrap();
        let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let status = str::from_utf8(&answer[9..12]).unwrap().parse().unwrap();
        (status, serde_json::from_slice(&answer[end + 4..]).unwrap_or_default())
    }

    /// Waits until the directory has all events up to this arrival.
    pub(super) async fn is_listed(&self, arrival: i64) {
        while self.shared.directory.applied() < arrival {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn accounts_are_listed_with_their_newest_commits_also_after_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    let frames = commits();
    let mut expected = std::collections::BTreeMap::new();
    let mut likes = std::collections::BTreeSet::new();
    for frame in &frames {
        match Decoder::new(Default::default()).decode(frame).unwrap() {
            Event::Commit(commit) => {
                let head = (commit.rev.to_owned(), commit.commit.to_string());
                let newest = expected.entry(commit.repo.to_owned()).or_insert(head.clone());
                if head.0 > newest.0 {
                    *newest = head;
                }
                let mut ops = commit.ops.iter();
                if ops.any(|op| {
                    op.action != Action::Delete && op.path.starts_with("app.bsky.feed.like/")
                }) {
                    likes.insert(commit.repo.to_owned());
                }
            }
            other => panic!("{other:?}"),
        }
    }
    let serving = Serving::start(folder.path(), |_| ()).await;
    let arrivals = serving.store_all(&frames).await;
    serving.is_listed(*arrivals.last().unwrap()).await;
    serving.stop().await;
    let serving = Serving::start(folder.path(), |_| ()).await;
    let (mut listed, mut cursor) = (std::collections::BTreeMap::new(), String::new());
    loop {
        let (status, page) =
            serving.query(&format!("com.atproto.sync.listRepos?limit=7&cursor={cursor}")).await;
        assert_eq!(status, 200);
        for repo in page["repos"].as_array().unwrap() {
            assert_eq!(repo["active"], true);
            let text = |key: &str| repo[key].as_str().unwrap().to_owned();
            listed.insert(text("did"), (text("rev"), text("head")));
        }
        match page["cursor"].as_str() {
            Some(next) => cursor = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(listed, expected);
    let (_, page) =
        serving.query("com.atproto.sync.listReposByCollection?collection=app.bsky.feed.like").await;
    let found: Vec<&str> =
        page["repos"].as_array().unwrap().iter().map(|of| of["did"].as_str().unwrap()).collect();
    assert_eq!(found, likes.iter().map(String::as_str).collect::<Vec<_>>());
    let (did, (rev, head)) = expected.first_key_value().unwrap();
    let latest = serving.query(&format!("com.atproto.sync.getLatestCommit?did={did}")).await;
    assert_eq!(latest, (200, json!({ "cid": head, "rev": rev })));
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_inactive_account_has_a_status_and_no_commit() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    let frame = &commits()[0];
    let did = match Decoder::new(Default::default()).decode(frame).unwrap() {
        Event::Commit(commit) => commit.repo.to_owned(),
        other => panic!("{other:?}"),
    };
    serving.store_frame(NOW, frame.clone()).await;
    let time = "2026-07-01T00:00:00Z";
    for (status, name) in [("takendown", "RepoTakendown"), ("deleted", "RepoDeactivated")] {
        let account = Account { seq: 1, did: &did, time, active: false, status: Some(status) };
        let arrival = serving.store_at(NOW, &Event::Account(account)).await;
        serving.is_listed(arrival).await;
        let (code, body) =
            serving.query(&format!("com.atproto.sync.getLatestCommit?did={did}")).await;
        assert_eq!((code, body["error"].as_str()), (403, Some(name)));
        let known = serving.query(&format!("com.atproto.sync.getRepoStatus?did={did}")).await;
        assert_eq!(known, (200, json!({ "did": did, "active": false, "status": status })));
    }
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn queries_that_cannot_be_answered_say_why() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    for (path, status, name) in [
        ("com.atproto.sync.getRepoStatus?did=did:web:a.test", 404, "RepoNotFound"),
        ("com.atproto.sync.getLatestCommit?did=did:web:a.test", 404, "RepoNotFound"),
        ("com.atproto.sync.getRepoStatus", 400, "InvalidRequest"),
        ("com.atproto.sync.getRepoStatus?did=alice", 400, "InvalidRequest"),
        ("com.atproto.sync.listRepos?limit=0", 400, "InvalidRequest"),
        ("com.atproto.sync.listRepos?limit=1001", 400, "InvalidRequest"),
        ("com.atproto.sync.listReposByCollection", 400, "InvalidRequest"),
        ("com.atproto.sync.listReposByCollection?collection=post", 400, "InvalidRequest"),
        ("com.atproto.sync.getHostStatus?hostname=a.test", 404, "HostNotFound"),
        ("network.bsky.jetstream.getZstdDictionary?id=7", 404, "DictionaryNotFound"),
        ("com.atproto.sync.getRepo?did=did:web:a.test", 404, "MethodNotImplemented"),
    ] {
        let (code, body) = serving.query(path).await;
        assert_eq!((code, body["error"].as_str()), (status, Some(name)), "{path}");
    }
    assert_eq!(serving.query("network.bsky.jetstream.getZstdDictionary").await.0, 200);
    serving.stop().await;
}

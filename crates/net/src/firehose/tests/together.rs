//! Several hosts at the same time.

use std::num::NonZero;
use std::sync::{Arc, Mutex};

use crypto::CompressedKey;
use futures_util::{SinkExt, StreamExt};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use verify::sync::{AccountKey, MemoryState};

use super::super::*;
use super::support::*;
use crate::http::Url;

/// A host that sends these frames on every connection, and then stays silent.
struct Host {
    url: Url,
    /// The queries of the requests.
    queries: Arc<Mutex<Vec<String>>>,
    task: JoinHandle<()>,
}

impl Host {
    async fn start(frames: Vec<Vec<u8>>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}/", listener.local_addr().unwrap()).parse().unwrap();
        let queries = Arc::<Mutex<Vec<String>>>::default();
        let seen = queries.clone();
        let task = tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                tokio::spawn(serve(stream, frames.clone(), seen.clone()));
            }
        });
        Self { url, queries, task }
    }

    fn added(&self, role: HostRole) -> AddedHost {
        AddedHost { url: self.url.clone(), role }
    }

    fn stream(&self) -> String {
        Upstream::new(self.url.clone()).stream_name()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(stream: tokio::net::TcpStream, frames: Vec<Vec<u8>>, seen: Arc<Mutex<Vec<String>>>) {
    #[expect(clippy::result_large_err, reason = "the library wants it")]
    let note = |request: &Request, response: Response| -> Result<Response, ErrorResponse> {
        let query = request.uri().query().unwrap_or_default().to_owned();
        seen.lock().unwrap().push(query);
        Ok(response)
    };
    let mut socket = tokio_tungstenite::accept_hdr_async(stream, note).await.unwrap();
    for frame in frames {
        let _ = socket.send(Message::Binary(frame.into())).await;
    }
    while socket.next().await.is_some_and(|message| message.is_ok()) {}
}

/// The keys and servers of accounts.
#[derive(Clone, Default)]
struct Servers(Vec<(String, CompressedKey, Option<Url>)>);

impl KeyProvider for Servers {
    fn cached(&self, did: &str) -> AccountKey {
        let account = self.0.iter().find(|(of, ..)| of == did);
        account.map_or(AccountKey::Unknown, |(_, key, _)| AccountKey::Known(*key))
    }

    fn look_up<'a>(&'a self, did: &'a str, _: bool) -> KeyLookup<'a> {
        let key = match self.cached(did) {
            AccountKey::Unknown => Err(KeyError::UnknownAccount),
            known => Ok(known),
        };
        Box::pin(async move { key })
    }

    fn invalidate(&self, _: &str) {}

    fn is_at(&self, did: &str, server: &Url) -> bool {
        self.0.iter().any(|(of, _, at)| of == did && at.as_ref() == Some(server))
    }
}

fn more(max_events_per_s: u32) -> MoreHosts {
    MoreHosts::new(NonZero::new(max_events_per_s).unwrap())
}

async fn follow(
    hosts: Vec<Url>,
    more: &MoreHosts,
    keys: &Servers,
    recorder: &Arc<Recorder>,
    journal: &Arc<TestJournal>,
) -> Result<RunSummary, RunError> {
    let mut options = options(Arc::new(keys.clone()));
    options.hosts = hosts;
    options.more_hosts = Some(more.clone());
    let states = |_| MemoryState::new([7; 16]);
    firehose(options).run(recorder.clone(), journal.clone(), states, recorder.stop()).await
}

fn of(writer: &Writer, server: Option<&Host>) -> (String, CompressedKey, Option<Url>) {
    (writer.did.clone(), writer.key(), server.map(|host| host.url.clone()))
}

#[tokio::test]
async fn all_hosts_are_read_at_the_same_time_and_each_resumes_at_its_own_cursor() {
    let mut writers = [Writer::new(0), Writer::new(1), Writer::new(2)];
    let frames = |writer: &mut Writer, from| vec![writer.commit(from), writer.commit(from + 1)];
    let first = Host::start(frames(&mut writers[0], 10)).await;
    let second = Host::start(frames(&mut writers[1], 700)).await;
    let third = Host::start(frames(&mut writers[2], 3)).await;
    let keys = Servers(writers.iter().map(|writer| of(writer, None)).collect());
    let journal = Arc::<TestJournal>::default();
    let more = more(1_000);
    more.add(second.added(HostRole::Relay));
    more.add(third.added(HostRole::Pds));
    more.add(third.added(HostRole::Pds));
    let recorder = Recorder::new(6, AckMode::Immediate);
    let summary = follow(vec![first.url.clone()], &more, &keys, &recorder, &journal).await.unwrap();
    for (writer, from) in writers.iter().zip([10, 700, 3]) {
        assert_eq!(recorder.of(writer), [(from, "verified"), (from + 1, "verified")]);
    }
    let cursors =
        [(first.stream(), Some(11)), (second.stream(), Some(701)), (third.stream(), Some(4))];
    assert_eq!(summary.cursors, cursors);
    assert_eq!(third.queries.lock().unwrap().len(), 1, "a host is followed once");
    // The numbers of the hosts can have another order in the next run.
    let more = self::more(1_000);
    more.add(third.added(HostRole::Pds));
    more.add(second.added(HostRole::Relay));
    let stop = Recorder::new(1, AckMode::Immediate);
    let (stopping, queries) =
        (stop.stop(), [&first, &second, &third].map(|host| host.queries.clone()));
    let watch = async {
        while queries.iter().any(|of| of.lock().unwrap().len() < 2) {
            tokio::task::yield_now().await;
        }
        stopping.request();
    };
    let hosts = vec![first.url.clone()];
    let (summary, ()) = tokio::join!(follow(hosts, &more, &keys, &stop, &journal), watch);
    summary.unwrap();
    let asked = queries.map(|of| of.lock().unwrap()[1].clone());
    assert_eq!(asked, ["cursor=11", "cursor=701", "cursor=4"]);
}

#[tokio::test]
async fn a_pds_speaks_for_its_own_accounts_alone_and_a_relay_for_all() {
    let (here, mut elsewhere) = (Writer::new(0), Writer::new(1));
    let pds_frames = vec![
        here.account(1, false),
        elsewhere.account(2, false),
        elsewhere.identity(3),
        elsewhere.commit(4),
    ];
    let pds = Host::start(pds_frames).await;
    let other = Host::start(vec![]).await;
    let relay = Host::start(vec![elsewhere.account(5, false)]).await;
    let keys = Servers(vec![of(&here, Some(&pds)), of(&elsewhere, Some(&other))]);
    let more = more(1_000);
    more.add(pds.added(HostRole::Pds));
    more.add(relay.added(HostRole::Relay));
    let recorder = Recorder::new(5, AckMode::Immediate);
    follow(vec![], &more, &keys, &recorder, &Arc::default()).await.unwrap();
    assert_eq!(recorder.of(&here), [(1, "unchecked")]);
    let mut found = recorder.of(&elsewhere);
    found.sort_unstable();
    let expected = [(2, "event/host"), (3, "event/host"), (4, "verified"), (5, "unchecked")];
    assert_eq!(found, expected, "a commit is proved by its signature, whoever sends it");
}

#[tokio::test]
async fn a_host_that_is_excluded_ends_no_other_one_and_a_run_without_others_fails() {
    let mut writer = Writer::new(0);
    let good = Host::start(vec![writer.commit(1)]).await;
    // No request leaves this machine.
    let url: Url = "http://203.0.113.7/".parse().unwrap();
    let bad = || AddedHost { url: url.clone(), role: HostRole::Pds };
    let keys = Servers(vec![of(&writer, None)]);
    let more = more(1_000);
    more.add(bad());
    more.add(good.added(HostRole::Pds));
    let recorder = Recorder::new(1, AckMode::Immediate);
    follow(vec![], &more, &keys, &recorder, &Arc::default()).await.unwrap();
    assert_eq!(recorder.events().len(), 1);
    // Without a good one, the run fails once no other will come.
    let more = self::more(1_000);
    more.add(bad());
    more.complete();
    let recorder = Recorder::new(1, AckMode::Immediate);
    let failed = follow(vec![], &more, &keys, &recorder, &Arc::default()).await.unwrap_err();
    assert!(matches!(failed, RunError::Feed(FeedError::NoHostLeft(_))), "{failed}");
}

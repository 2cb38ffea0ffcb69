//! How far is everything out?

use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use wireproof::net::http::Url;
use wireproof::net::jetstream::Upstream;
use wireproof::store::{Store, StoreError};

use super::super::lines::Acknowledge;

/// The last event of each host whose line is out.
#[derive(Debug)]
pub(in super::super) struct Places {
    streams: Vec<String>,
    reached: Arc<Mutex<Vec<Option<u64>>>>,
    /// Where an earlier run had come to.
    begun: Vec<Option<u64>>,
    room: Arc<Semaphore>,
}

/// A line on its way.
#[derive(Debug)]
pub(super) struct Told {
    place: Option<(usize, u64)>,
    reached: Arc<Mutex<Vec<Option<u64>>>>,
    _room: OwnedSemaphorePermit,
}

impl Places {
    /// The places of an earlier run; `first` for streams that have none.
    pub(super) fn load(
        streams: Vec<String>,
        store: &Store,
        first: Option<u64>,
    ) -> Result<Self, StoreError> {
        let load = |stream: &String| store.cursor(stream);
        let begun: Vec<_> = streams.iter().map(load).collect::<Result<_, StoreError>>()?;
        let reached = begun.iter().map(|place| place.or(first)).collect();
        let room = Arc::new(Semaphore::new(MAX_LINES));
        Ok(Self { streams, reached: Arc::new(Mutex::new(reached)), begun, room })
    }

    /// Where to begin with each host.
    pub(super) fn origins(&self, urls: &[Url]) -> Vec<Upstream> {
        let reached = self.reached();
        let origin = |(url, cursor): (&Url, &Option<u64>)| {
            let mut origin = Upstream::new(url.clone());
            origin.cursor = *cursor;
            origin
        };
        urls.iter().zip(reached.iter()).map(origin).collect()
    }

    /// How far everything is out, for each host.
    pub(in super::super) fn reached(&self) -> Vec<Option<u64>> {
        self.reached.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many lines are on their way.
    pub(in super::super) fn under_way(&self) -> usize {
        MAX_LINES - self.room.available_permits()
    }

    /// Whether an earlier run ended with this event: hosts begin with the one that they are asked for.
    pub(super) fn is_old(&self, (host, place): (usize, u64)) -> bool {
        self.begun[host] == Some(place)
    }

    /// A line sets out, when there is room for it.
    pub(super) async fn begin(&self, place: Option<(usize, u64)>) -> Told {
        let room = Arc::clone(&self.room).acquire_owned().await;
        let room = room.expect("nobody closes it");
        Told { place, reached: Arc::clone(&self.reached), _room: room }
    }

    /// Keeps the places.
    pub(super) async fn keep(&self, store: &Store) -> Result<(), StoreError> {
        let reached = self.reached();
        let streams = self.streams.iter().cloned();
        let cursors: Vec<(String, u64)> =
            streams.zip(reached).filter_map(|(stream, place)| Some((stream, place?))).collect();
        let store = store.clone();
        let keep = move || store.checkpoint(&cursors, &NO_ACCOUNTS);
        tokio::task::spawn_blocking(keep).await.expect("a store does not panic")
    }
}

impl Acknowledge for Told {
    fn done(self) {
        if let Some((host, place)) = self.place {
            let mut reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
            reached[host] = Some(place);
        }
    }
}

/// How many lines may be on their way.
const MAX_LINES: usize = 8192;

const NO_ACCOUNTS: [(&str, wireproof::verify::sync::AccountState); 0] = [];

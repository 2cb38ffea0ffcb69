//! The clients of a server: a bound for all of them, and which one gives way when another needs its place.
//!
//! A client that takes events, or took one a moment ago, keeps its place. When all places are taken, the client that has taken
//! nothing for longest gives way, even if it answers pings: it may be up to date, and continues from its cursor when it connects again. If one
//! address has more than half of the places, a client of it gives way to one of another address even if it takes events.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base::StopSignal;
use tokio::time::Instant;

use crate::server_places::{PeerAddress, of_heaviest_address};

/// The clients of a server, of which a number may be connected.
#[derive(Debug)]
pub struct ClientPlaces {
    max: usize,
    max_per_address: usize,
    min_idle: Duration,
    connected: Mutex<Vec<Arc<Connected>>>,
}

#[derive(Debug)]
struct Connected {
    address: PeerAddress,
    /// When it was connected, or took the last event.
    active: Mutex<Instant>,
    gives_way: StopSignal,
}

/// A place among the clients of a server, until it is dropped.
#[derive(Debug)]
pub struct ClientPlace {
    clients: Arc<ClientPlaces>,
    connected: Arc<Connected>,
}

impl ClientPlaces {
    /// Room for a number of clients, which give way once they have taken nothing for `min_idle`.
    pub fn new(max: usize, min_idle: Duration) -> Arc<Self> {
        Self::with_address_limit(max, usize::MAX, min_idle)
    }

    /// Room for a number of clients, of which an address has a number at most.
    pub fn with_address_limit(max: usize, max_per_address: usize, min_idle: Duration) -> Arc<Self> {
        Arc::new(Self { max, max_per_address, min_idle, connected: Mutex::default() })
    }

    /// Takes a place that is free, or of a client that gives way; `None` if all are kept.
    pub fn take(self: &Arc<Self>, address: PeerAddress) -> Option<ClientPlace> {
        let mut connected = self.connected();
        if connected.iter().filter(|of| of.address == address).count() >= self.max_per_address {
            return None;
        }
        if connected.len() >= self.max {
            let at = self.to_leave(&connected, address)?;
            connected.swap_remove(at).gives_way.request();
        }
        let active = Mutex::new(Instant::now());
        let new = Arc::new(Connected { address, active, gives_way: StopSignal::new() });
        connected.push(new.clone());
        Some(ClientPlace { clients: self.clone(), connected: new })
    }

    /// The index of the client that gives way to one of an address.
    fn to_leave(&self, connected: &[Arc<Connected>], address: PeerAddress) -> Option<usize> {
        let (heaviest, count) = of_heaviest_address(connected, |of| of.address)?;
        let has_too_many = count > self.max / 2 && heaviest != address;
        let candidates = connected.iter().enumerate();
        let candidates = candidates.filter(|(_, of)| !has_too_many || of.address == heaviest);
        let (at, longest) = candidates.min_by_key(|(_, of)| of.active())?;
        (has_too_many || longest.active().elapsed() >= self.min_idle).then_some(at)
    }

    fn connected(&self) -> MutexGuard<'_, Vec<Arc<Connected>>> {
        self.connected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connected {
    fn active(&self) -> Instant {
        *self.active.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ClientPlace {
    /// Notes that the client takes an event now.
    pub fn note_taken(&self) {
        *self.connected.active.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    /// Requested when the client gives way.
    pub fn gives_way(&self) -> StopSignal {
        self.connected.gives_way.clone()
    }
}

impl Drop for ClientPlace {
    fn drop(&mut self) {
        self.clients.connected().retain(|of| !Arc::ptr_eq(of, &self.connected));
    }
}

#[cfg(test)]
mod tests {
    use std::net::IpAddr;

    use tokio::time::advance;

    use super::*;

    const IDLE: Duration = Duration::from_secs(5);

    fn address(last: u8) -> PeerAddress {
        PeerAddress::new(IpAddr::from([192, 0, 2, last]))
    }

    #[tokio::test(start_paused = true)]
    async fn the_client_that_has_taken_nothing_for_longest_gives_way_and_one_that_takes_does_not() {
        let clients = ClientPlaces::new(3, IDLE);
        let mut places = Vec::new();
        for _ in 0..3 {
            places.push(clients.take(address(1)).unwrap());
            advance(Duration::from_millis(10)).await;
        }
        assert!(clients.take(address(1)).is_none(), "they have just connected");
        advance(IDLE).await;
        places[0].note_taken();
        let new = clients.take(address(1)).unwrap();
        let given: Vec<bool> = places.iter().map(|of| of.gives_way().is_requested()).collect();
        assert_eq!(given, [false, true, false]);
        // The end of a client that gave way frees no second place.
        drop(places.remove(1));
        advance(IDLE - Duration::from_millis(1)).await;
        places.iter().for_each(ClientPlace::note_taken);
        assert!(clients.take(address(1)).is_none());
        drop(new);
        assert!(clients.take(address(1)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_its_number_of_places_even_if_others_are_free() {
        let clients = ClientPlaces::with_address_limit(9, 2, IDLE);
        let places: Vec<_> = (0..2).map(|_| clients.take(address(1)).unwrap()).collect();
        advance(IDLE).await;
        assert!(clients.take(address(1)).is_none());
        assert!(clients.take(address(2)).is_some());
        drop(places);
        assert!(clients.take(address(1)).is_some());
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_with_more_than_half_of_the_places_keeps_no_other_address_out() {
        let clients = ClientPlaces::new(4, IDLE);
        let heavy: Vec<_> = (0..4).map(|_| clients.take(address(1)).unwrap()).collect();
        let others: Vec<_> = (2..4).map(|of| clients.take(address(of)).unwrap()).collect();
        assert_eq!(heavy.iter().filter(|of| of.gives_way().is_requested()).count(), 2);
        assert!(clients.take(address(4)).is_none(), "no address has more than half");
        assert!(clients.take(address(1)).is_none());
        drop(others);
    }
}

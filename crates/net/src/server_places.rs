//! Places among the connections of a server: a bound for all of them, and the choice of the connection that is closed when others
//! need its place.
//!
//! | a place is needed, and | closed connection |
//! |---|---|
//! | connections have sent no request yet | of these, the oldest of the address that has most of them |
//! | an address has more than half of all places | its oldest connection, if that takes longer than a second |
//!
//! So an address, such as a proxy's, may use all places while no other address needs one, and keeps no other address
//! out.

use std::io;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hyper::body::{Body, Incoming};
use hyper::{Request, Response};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep, timeout};

use crate::http_server::{ConnectionLimits, serve_request};

/// The address by which the connections of a peer are counted: of IPv4 the address, of IPv6 its network of 64 bits, which a
/// machine usually has for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PeerAddress(Option<IpAddr>);

impl PeerAddress {
    /// The processes of this machine at a Unix socket.
    pub const UNIX_SOCKET: Self = Self(None);

    /// The address of a peer.
    pub fn new(address: IpAddr) -> Self {
        Self(Some(match address.to_canonical() {
            IpAddr::V6(address) => {
                IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & IPV6_NETWORK))
            }
            address => address,
        }))
    }
}

/// Accepts a connection, with the address of its peer.
///
/// # Errors
/// As for [`TcpListener::accept`].
pub async fn accept_tcp(listener: &TcpListener) -> io::Result<(TcpStream, PeerAddress)> {
    let (stream, address) = listener.accept().await?;
    Ok((stream, PeerAddress::new(address.ip())))
}

/// The items of the address with the most items, and their number.
pub fn of_heaviest_address<T>(
    items: &[T],
    address_of: impl Fn(&T) -> PeerAddress,
) -> Option<(PeerAddress, usize)> {
    let mut addresses: Vec<PeerAddress> = items.iter().map(address_of).collect();
    addresses.sort_unstable();
    let counts = addresses.chunk_by(|first, second| first == second);
    let counted = counts.filter_map(|equal| Some((*equal.first()?, equal.len())));
    counted.max_by_key(|(_, count)| *count)
}

/// The connections of a server, of which a number may be open.
#[derive(Debug)]
pub struct Connections<S> {
    places: Arc<Places>,
    /// An accepted connection that has no place yet.
    newcomer: Mutex<Option<(S, PeerAddress)>>,
}

#[derive(Debug)]
struct Places {
    max: usize,
    /// Oldest first.
    open: Mutex<Vec<Arc<Open>>>,
    left: Notify,
}

/// An open connection.
#[derive(Debug)]
struct Open {
    address: PeerAddress,
    since: Instant,
    state: Mutex<State>,
    gives_way: Notify,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    AwaitsRequest,
    Served,
    Leaves,
}

/// A place among the connections of a server, until it is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    open: Arc<Open>,
}

impl<S> Connections<S> {
    /// Room for a number of connections, at least two.
    pub fn new(max: usize) -> Self {
        let places = Places { max: max.max(2), open: Mutex::default(), left: Notify::new() };
        Self { places: Arc::new(places), newcomer: Mutex::default() }
    }

    /// Accepts a connection, and returns it once there is a place for it. An attempt that fails is repeated: it concerns one
    /// connection, or the number of open files, which may become less. Cancel-safe if `accept` is.
    pub async fn accept<F>(&self, accept: impl Fn() -> F) -> (S, Place)
    where
        F: Future<Output = io::Result<(S, PeerAddress)>>,
    {
        loop {
            let newcomer = self.newcomer().take();
            let (stream, address) = match newcomer {
                Some(newcomer) => newcomer,
                None => accepted(&accept).await,
            };
            if let Some(place) = Places::take(&self.places, address) {
                return (stream, place);
            }
            *self.newcomer() = Some((stream, address));
            // A connection that leaves ends the wait; otherwise one may have become slow.
            let _ = timeout(SLOW / 4, self.places.left.notified()).await;
        }
    }

    fn newcomer(&self) -> MutexGuard<'_, Option<(S, PeerAddress)>> {
        self.newcomer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn accepted<S, F>(accept: &impl Fn() -> F) -> (S, PeerAddress)
where
    F: Future<Output = io::Result<(S, PeerAddress)>>,
{
    loop {
        match accept().await {
            Ok(accepted) => return accepted,
            Err(_) => sleep(ACCEPT_PAUSE).await,
        }
    }
}

impl Places {
    /// Takes a free place, or the place of a connection that is closed for it; `None` if there is none.
    fn take(places: &Arc<Self>, address: PeerAddress) -> Option<Place> {
        let mut open = places.open();
        let staying: Vec<&Arc<Open>> =
            open.iter().filter(|of| of.state() != State::Leaves).collect();
        if staying.len() >= places.max {
            oldest_without_request(&staying).or_else(|| places.oldest_slow(&staying))?.leave();
        }
        let (since, state) = (Instant::now(), Mutex::new(State::AwaitsRequest));
        let new = Arc::new(Open { address, since, state, gives_way: Notify::new() });
        open.push(new.clone());
        Some(Place { places: places.clone(), open: new })
    }

    /// The oldest connection of an address that has more than half of the places, if it is slow.
    fn oldest_slow<'o>(&self, open: &[&'o Arc<Open>]) -> Option<&'o Open> {
        let (address, count) = of_heaviest_address(open, |of| of.address)?;
        let oldest = open.iter().find(|of| of.address == address)?;
        (count > self.max / 2 && oldest.since.elapsed() >= SLOW).then_some(&***oldest)
    }

    fn open(&self) -> MutexGuard<'_, Vec<Arc<Open>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Of the connections without a request, the oldest one of the address that has most of them.
fn oldest_without_request<'o>(open: &[&'o Arc<Open>]) -> Option<&'o Open> {
    let is_idle = |of: &&&'o Arc<Open>| of.state() == State::AwaitsRequest;
    let idle: Vec<&'o Arc<Open>> = open.iter().filter(is_idle).copied().collect();
    let (address, _) = of_heaviest_address(&idle, |of| of.address)?;
    idle.into_iter().find(|of| of.address == address).map(|of| &**of)
}

impl Open {
    fn state(&self) -> State {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn serve(&self) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if *state == State::AwaitsRequest {
            *state = State::Served;
        }
    }

    fn leave(&self) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = State::Leaves;
        self.gives_way.notify_one();
    }
}

impl Place {
    /// The address of the peer.
    pub fn address(&self) -> PeerAddress {
        self.open.address
    }

    /// Serves the request of the connection, which may be upgraded. A connection that fails, takes too long or has to free its
    /// place is closed.
    pub async fn serve<S, R, F, B>(&self, stream: S, limits: &ConnectionLimits, respond: R)
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
        R: Fn(Request<Incoming>) -> F,
        F: Future<Output = Response<B>>,
        B: Body<Data: Send, Error: Into<Box<dyn std::error::Error + Send + Sync>>> + 'static,
    {
        let respond = |request| {
            self.open.serve();
            respond(request)
        };
        tokio::select! {
            () = self.open.gives_way.notified() => {}
            () = serve_request(stream, limits, respond) => {}
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.open().retain(|open| !Arc::ptr_eq(open, &self.open));
        self.places.left.notify_one();
    }
}

/// Age of a connection from which it can be taken for slow.
const SLOW: Duration = Duration::from_secs(1);

/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// The bits of an IPv6 address that name its network.
const IPV6_NETWORK: u128 = !0 << 64;

#[cfg(test)]
mod tests {
    use http_body_util::Full;
    use hyper::StatusCode;
    use hyper::body::Bytes;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    use super::*;
    use crate::http_server::text_response;

    /// A server whose answers to `/slow` never come.
    struct Server(UnboundedSender<(DuplexStream, PeerAddress)>);

    impl Server {
        fn start(max: usize) -> Self {
            let (connect, accepted) = unbounded_channel();
            tokio::spawn(async move {
                let (connections, accepted) =
                    (Connections::new(max), tokio::sync::Mutex::new(accepted));
                let accept = || async {
                    let next = accepted.lock().await.recv().await;
                    next.ok_or_else(|| io::Error::other("the end"))
                };
                loop {
                    let (stream, place) = connections.accept(accept).await;
                    tokio::spawn(async move {
                        place.serve(stream, &ConnectionLimits::default(), respond).await;
                    });
                }
            });
            Self(connect)
        }

        fn connect(&self, address: PeerAddress) -> DuplexStream {
            let (client, server) = duplex(1 << 16);
            self.0.send((server, address)).unwrap();
            client
        }

        async fn request(&self, address: PeerAddress, path: &str) -> DuplexStream {
            let mut client = self.connect(address);
            let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\n\r\n");
            client.write_all(request.as_bytes()).await.unwrap();
            client
        }

        async fn answer(&self, address: PeerAddress) -> String {
            let mut answer = String::new();
            let _ = self.request(address, "/").await.read_to_string(&mut answer).await;
            answer
        }
    }

    async fn respond(request: Request<Incoming>) -> Response<Full<Bytes>> {
        if request.uri().path() == "/slow" {
            std::future::pending::<()>().await;
        }
        text_response(StatusCode::OK, "ok")
    }

    fn address(last: u8) -> PeerAddress {
        PeerAddress::new(IpAddr::from([192, 0, 2, last]))
    }

    #[tokio::test(start_paused = true)]
    async fn connections_without_a_request_give_way_to_one_that_has_one() {
        let server = Server::start(4);
        let started = Instant::now();
        let mut idle = Vec::new();
        for _ in 0..100 {
            idle.extend((0..20).map(|_| server.connect(address(1))));
            let answer = server.answer(address(1)).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        }
        assert_eq!(started.elapsed(), Duration::ZERO, "nobody waited");
    }

    #[tokio::test(start_paused = true)]
    async fn slow_requests_of_an_address_give_way_to_another_address_within_a_second_or_so() {
        let server = Server::start(8);
        let started = Instant::now();
        let mut slow = Vec::new();
        for _ in 0..8 {
            slow.push(server.request(address(1), "/slow").await);
        }
        let answer = server.answer(address(2)).await;
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
        assert!(started.elapsed() <= 2 * SLOW, "{:?}", started.elapsed());
        for slow in slow.iter_mut().skip(1) {
            assert!(timeout(SLOW, slow.read_u8()).await.is_err(), "only one gave way");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn the_silent_connections_of_the_heaviest_address_give_way_first() {
        let server = Server::start(8);
        let mut other = server.connect(address(2));
        let mut heavy: Vec<_> = (0..100).map(|_| server.connect(address(1))).collect();
        assert!(timeout(Duration::from_millis(1), other.read_u8()).await.is_err(), "it is open");
        assert!(heavy[0].read_u8().await.is_err(), "the oldest of the other address is closed");
        other.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
        let mut answer = String::new();
        other.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[tokio::test(start_paused = true)]
    async fn an_address_has_all_places_while_no_other_one_needs_them() {
        let (server, mut all) = (Server::start(8), Vec::new());
        for _ in 0..8 {
            all.push(server.request(address(1), "/slow").await);
        }
        for client in &mut all {
            // Together longer than a connection that has to free its place has, and shorter than any may take.
            assert!(timeout(SLOW / 2, client.read_u8()).await.is_err());
        }
    }

    #[test]
    fn addresses_are_counted_as_those_of_one_machine() {
        let of = |text: &str| PeerAddress::new(text.parse().unwrap());
        assert_eq!(of("192.0.2.1"), of("::ffff:192.0.2.1"));
        assert_ne!(of("192.0.2.1"), of("192.0.2.2"));
        assert_eq!(of("2001:db8::1"), of("2001:db8::ffff:1:2:3"));
        assert_ne!(of("2001:db8::1"), of("2001:db8:0:1::1"));
    }
}

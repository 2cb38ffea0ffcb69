//! The admin API of a run over HTTP: access and requests.
//!
//! | request | body | answer |
//! |---|---|---|
//! | `GET /status` | | `RunStatus` |
//! | `GET /accounts?cursor=DID` | | `AccountPage` |
//! | `GET /accounts/DID` | | `AccountStatus` |
//! | `POST /accounts/add`, `/accounts/remove` | `AccountList` | `Changed` |
//! | `GET /collections` | | `Collections` |
//! | `POST /collections/add`, `/collections/remove` | `CollectionList` | `Changed` |
//! | `POST /pause`, `/resume` | `PauseTarget` | `Paused` |
//!
//! Every request needs the token. Requests of web pages are refused, and connections, bodies and their time are
//! bounded.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::header::{HeaderMap, HeaderValue, ORIGIN, WWW_AUTHENTICATE};
use hyper::{Method, Request, Response, StatusCode};
use net::http_server::{AccessToken, ConnectionLimits, is_local_host, response};
use net::server_places::{Connections, PeerAddress, accept_tcp};
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpListener;
#[cfg(unix)]
use tokio::net::UnixListener;

use super::control::{Control, Edit};
use super::handles;
use super::status::Status;
use crate::admin_api::access::{AdminAddress, Stream};
use crate::admin_api::documents::{AccountList, CollectionList, PauseTarget, Refusal};
use crate::failure::Failure;

/// The server of the admin API, before its run exists.
pub(super) struct AdminSocket {
    listener: Listener,
    token: AccessToken,
}

/// The server of the admin API.
pub(super) struct AdminServer {
    socket: AdminSocket,
    control: Arc<Control>,
}

enum Listener {
    Tcp(TcpListener),
    #[cfg(unix)]
    Unix(UnixListener),
}

impl AdminSocket {
    /// Binds the address.
    pub(super) async fn bind(address: &AdminAddress, token: AccessToken) -> Result<Self, Failure> {
        let failed = |error: io::Error| Failure::Local(format!("--admin {address}: {error}"));
        let listener = match address {
            AdminAddress::Tcp(address) => {
                TcpListener::bind(address).await.map(Listener::Tcp).map_err(failed)?
            }
            #[cfg(unix)]
            AdminAddress::Unix(path) => bind_unix(path).map(Listener::Unix).map_err(failed)?,
        };
        Ok(Self { listener, token })
    }

    /// The server of this run; prints its address, and warns if it is not of this machine alone.
    pub(super) fn serve(self, control: Control, status: &Status) -> AdminServer {
        match &self.listener {
            Listener::Tcp(listener) => {
                if let Ok(address) = listener.local_addr() {
                    status.print(&format!("admin API at http://{address}"));
                    warning(address).iter().for_each(|text| status.print_warning(text));
                }
            }
            #[cfg(unix)]
            Listener::Unix(_) => status.print("admin API at the Unix socket"),
        }
        AdminServer { socket: self, control: Arc::new(control) }
    }
}

/// Why an address is named in a warning; `None` for one that only this machine reaches.
fn warning(address: SocketAddr) -> Option<String> {
    let is_loopback = address.ip().to_canonical().is_loopback();
    (!is_loopback).then(|| {
        format!(
            "--admin {address} is not a loopback address, and the token is sent unencrypted: put a TLS proxy in front of it"
        )
    })
}

/// Binds a Unix socket for this user alone. One that a run has left behind is replaced.
#[cfg(unix)]
fn bind_unix(path: &std::path::Path) -> io::Result<UnixListener> {
    use std::fs;
    use std::os::unix::fs::{FileTypeExt, PermissionsExt};
    let is_socket = fs::symlink_metadata(path).is_ok_and(|file| file.file_type().is_socket());
    if is_socket && std::os::unix::net::UnixStream::connect(path).is_err() {
        fs::remove_file(path)?;
    }
    let listener = UnixListener::bind(path)?;
    fs::set_permissions(path, fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}

impl Listener {
    async fn accept(&self) -> io::Result<(Stream, PeerAddress)> {
        match self {
            Self::Tcp(listener) => {
                let (stream, address) = accept_tcp(listener).await?;
                Ok((Box::new(stream), address))
            }
            #[cfg(unix)]
            Self::Unix(listener) => {
                Ok((Box::new(listener.accept().await?.0), PeerAddress::UNIX_SOCKET))
            }
        }
    }

    /// Whether only processes of this machine reach it by TCP: then a name in `Host` belongs to an attacker's page,
    /// whose DNS answers with this machine.
    fn is_loopback(&self) -> bool {
        match self {
            Self::Tcp(listener) => {
                listener.local_addr().is_ok_and(|of| of.ip().to_canonical().is_loopback())
            }
            #[cfg(unix)]
            Self::Unix(_) => false,
        }
    }
}

impl AdminServer {
    /// Serves requests forever; without a server, waits forever.
    pub(super) async fn run(server: Option<Self>) -> Infallible {
        let Some(server) = server else { return std::future::pending().await };
        let connections = Connections::new(MAX_CONNECTIONS);
        let server = Arc::new(server);
        loop {
            let accept = || server.socket.listener.accept();
            let (stream, place) = connections.accept(accept).await;
            let server = server.clone();
            tokio::spawn(async move {
                let respond = |request| server.respond(request);
                place.serve(stream, &ConnectionLimits::default(), respond).await;
            });
        }
    }

    async fn respond(&self, request: Request<Incoming>) -> Response<Full<Bytes>> {
        match self.answer(request).await {
            Ok(response) => response,
            Err((status, message)) => json(status, &Refusal { message }),
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Refused> {
        self.check_sender(request.headers())?;
        let (head, body) = request.into_parts();
        let (path, query) = (head.uri.path().to_owned(), head.uri.query().unwrap_or_default());
        let control = self.control.clone();
        match (&head.method, &*path) {
            (&Method::GET, "/status") => run(move || Ok(control.status())).await,
            (&Method::GET, "/collections") => run(move || Ok(control.list_collections())).await,
            (&Method::GET, "/accounts") => {
                let cursor = query.strip_prefix("cursor=").unwrap_or_default().to_owned();
                run(move || Ok(control.list_accounts(&cursor))).await
            }
            (&Method::GET, _) if let Some(did) = path.strip_prefix("/accounts/") => {
                let did = handles::of_request(&[did.to_owned()], &control.resolver).await;
                run(move || control.account(&did?[0])).await
            }
            (&Method::POST, "/accounts/add" | "/accounts/remove") => {
                let list: AccountList = read(body).await?;
                let dids = handles::of_request(&list.dids, &control.resolver).await;
                run(move || control.edit_accounts(edit_of(&path), &dids?)).await
            }
            (&Method::POST, "/collections/add" | "/collections/remove") => {
                let list: CollectionList = read(body).await?;
                run(move || control.edit_collections(edit_of(&path), &list.collections)).await
            }
            (&Method::POST, "/pause" | "/resume") => {
                let target: PauseTarget = read(body).await?;
                let destination = target.destination;
                run(move || control.set_paused(destination.as_deref(), path == "/pause")).await
            }
            _ => {
                Err(refuse(StatusCode::NOT_FOUND, "no such request: see docs/formats/admin-api.md"))
            }
        }
    }

    /// Checks the token, and that no web page sends the request. Every browser sends an origin with it, except to the
    /// origin of the page, which is known by its `Host`.
    fn check_sender(&self, headers: &HeaderMap) -> Result<(), Refused> {
        if headers.contains_key(ORIGIN) || headers.contains_key("sec-fetch-site") {
            return Err(refuse(StatusCode::FORBIDDEN, "web pages may not use this API"));
        }
        if self.socket.listener.is_loopback() && !is_local_host(headers) {
            return Err(refuse(
                StatusCode::FORBIDDEN,
                "expected an IP address or localhost as Host",
            ));
        }
        if self.socket.token.is_in(headers) {
            Ok(())
        } else {
            Err(refuse(StatusCode::UNAUTHORIZED, "expected Authorization: Bearer TOKEN"))
        }
    }
}

/// Why a request is refused.
type Refused = (StatusCode, String);

fn refuse(status: StatusCode, message: &str) -> Refused {
    (status, message.to_owned())
}

fn edit_of(path: &str) -> Edit {
    if path.ends_with("/add") { Edit::Add } else { Edit::Remove }
}

/// Runs an operation on a thread for blocking work, and answers with its document.
async fn run<T: Serialize + Send + 'static>(
    operation: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<Response<Full<Bytes>>, Refused> {
    let ended = tokio::task::spawn_blocking(operation).await;
    match ended {
        Ok(Ok(document)) => Ok(json(StatusCode::OK, &document)),
        Ok(Err(failure)) => {
            let status = match &failure {
                Failure::Usage(_) => StatusCode::BAD_REQUEST,
                _ => StatusCode::INTERNAL_SERVER_ERROR,
            };
            Err((status, failure.message().unwrap_or_default().to_owned()))
        }
        Err(_) => Err(refuse(StatusCode::INTERNAL_SERVER_ERROR, "the operation was ended")),
    }
}

/// Reads a document of bounded size.
async fn read<T: DeserializeOwned>(body: Incoming) -> Result<T, Refused> {
    let too_long = |_| {
        let message = format!("a body that is cut off, or of more than {MAX_BODY_BYTES} bytes");
        (StatusCode::PAYLOAD_TOO_LARGE, message)
    };
    let bytes = Limited::new(body, MAX_BODY_BYTES).collect().await.map_err(too_long)?.to_bytes();
    serde_json::from_slice(&bytes)
        .map_err(|error| (StatusCode::BAD_REQUEST, format!("the body: {error}")))
}

fn json(status: StatusCode, document: &impl Serialize) -> Response<Full<Bytes>> {
    let body = serde_json::to_vec(document).unwrap_or_default();
    let mut response = response(status, "application/json", body);
    if status == StatusCode::UNAUTHORIZED {
        response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    }
    response
}

/// Maximum number of open connections: above it, the oldest one without a request is closed.
const MAX_CONNECTIONS: usize = 16;

/// Maximum size of a body in bytes: some 30,000 accounts.
const MAX_BODY_BYTES: usize = 1 << 20;

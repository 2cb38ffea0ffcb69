//! Requests to the admin API of a run.

use std::io;
use std::time::Duration;

use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use net::http_server::AccessToken;
use serde::Serialize;
use serde::de::DeserializeOwned;
use tokio::net::TcpStream;
#[cfg(unix)]
use tokio::net::UnixStream;
use tokio::runtime::Runtime;
use tokio::time::timeout;

use crate::failure::Failure;
use crate::network;
use follower::admin_api::access::{AdminAddress, Stream};
use follower::admin_api::documents::Refusal;

/// A client of one admin API.
pub(super) struct Client {
    address: AdminAddress,
    authorization: String,
    runtime: Runtime,
}

impl Client {
    pub(super) fn new(address: AdminAddress, token: &str) -> Result<Self, Failure> {
        AccessToken::new(token).map_err(|error| Failure::Usage(error.to_string()))?;
        let authorization = format!("Bearer {token}");
        Ok(Self { address, authorization, runtime: network::runtime()? })
    }

    pub(super) fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, Failure> {
        self.request(Method::GET, path, Vec::new())
    }

    pub(super) fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
    ) -> Result<T, Failure> {
        let body = serde_json::to_vec(body).map_err(io::Error::from)?;
        self.request(Method::POST, path, body)
    }

    fn request<T: DeserializeOwned>(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
    ) -> Result<T, Failure> {
        let failed = |why: String| Failure::Network(format!("{}: {why}", self.address));
        let request = Request::builder().method(method).uri(path);
        let request = request.header(HOST, "localhost").header(AUTHORIZATION, &self.authorization);
        let request = request.header(CONTENT_TYPE, "application/json").body(Full::from(body));
        let request = request.map_err(|error| Failure::Usage(error.to_string()))?;
        let answer = async { timeout(MAX_TIME, self.exchange(request)).await };
        let answer = self.runtime.block_on(answer);
        let (status, body) = answer
            .map_err(|_| failed("no answer in time".to_owned()))?
            .map_err(|error| failed(error.to_string()))?;
        if status == StatusCode::OK {
            let document = serde_json::from_slice(&body);
            return document.map_err(|error| failed(format!("an unexpected answer: {error}")));
        }
        let refusal = serde_json::from_slice::<Refusal>(&body);
        let message = refusal.map_or_else(|_| status.to_string(), |refusal| refusal.message);
        Err(match status {
            StatusCode::BAD_REQUEST => Failure::Usage(message),
            _ => failed(message),
        })
    }

    async fn exchange(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Result<(StatusCode, Bytes), Box<dyn std::error::Error + Send + Sync>> {
        let (mut sender, connection) =
            http1::handshake(TokioIo::new(self.connect().await?)).await?;
        let exchange = async {
            let response = sender.send_request(request).await?;
            let (head, body) = response.into_parts();
            let body = Limited::new(body, MAX_BODY_BYTES).collect().await?.to_bytes();
            Ok((head.status, body))
        };
        tokio::select! {
            biased;
            answer = exchange => answer,
            Err(error) = connection => Err(error.into()),
        }
    }

    async fn connect(&self) -> io::Result<Stream> {
        Ok(match &self.address {
            AdminAddress::Tcp(address) => Box::new(TcpStream::connect(address).await?),
            #[cfg(unix)]
            AdminAddress::Unix(path) => Box::new(UnixStream::connect(path).await?),
        })
    }
}

/// Maximum time of a request.
const MAX_TIME: Duration = Duration::from_secs(30);

/// Maximum size of an answer in bytes.
const MAX_BODY_BYTES: usize = 16 << 20;

//! One connection attempt: the dictionary first, then the upgrade.

use std::sync::{Arc, Mutex, PoisonError};

use super::dictionary::{Compression, Dictionary, fetch};
use super::options::Options;
use super::request::{Question, Version};
use super::wanted::Filter;
use crate::http::Url;
use crate::websocket::{DialError, Dialer, Socket, SocketOptions};

/// One attempt.
pub(super) struct Call {
    pub(super) dialer: Dialer,
    pub(super) url: Url,
    pub(super) cursor: Option<u64>,
    pub(super) wanted: Filter,
    /// How often something else had been wanted by then.
    pub(super) changes: u64,
    pub(super) options: Options,
    /// Where to put what belongs to the connection.
    pub(super) prepared: Arc<Mutex<Prepared>>,
}

impl Call {
    pub(super) async fn dial(self) -> Result<Socket, DialError> {
        let version = self.options.version;
        let dictionary = self.dictionary().await?;
        let id = dictionary.as_ref().map(|dictionary| dictionary.id);
        let (wanted, cursor) = (&self.wanted, self.cursor);
        let request = Question { version, wanted, cursor, dictionary: id }.to_request(&self.url);
        let protocol = (version == Version::V2).then_some(V2_PROTOCOL);
        let socket = SocketOptions { protocol, ..self.options.socket };
        let socket = self.dialer.dial(&request.url, &socket).await?;
        let prepared = Prepared { dictionary, hello: request.hello, changes: self.changes };
        *self.prepared.lock().unwrap_or_else(PoisonError::into_inner) = prepared;
        Ok(socket)
    }

    async fn dictionary(&self) -> Result<Option<Dictionary>, DialError> {
        match &self.options.compression {
            Compression::None => Ok(None),
            Compression::Served(id) => fetch(self.dialer.client(), &self.url, *id).await.map(Some),
            // The client has made sure that this is one.
            Compression::Given(bytes) => Ok(Dictionary::new(bytes)),
        }
    }
}

/// What was found out while dialing.
#[derive(Debug, Default)]
pub(super) struct Prepared {
    pub(super) dictionary: Option<Dictionary>,
    pub(super) hello: Option<String>,
    /// The wishes with which it was dialed.
    pub(super) changes: u64,
}

const V2_PROTOCOL: &str = "xrpc.v1.json";

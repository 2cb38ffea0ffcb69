//! The arguments of WebSocket clients that acknowledge events.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::builder::FalseyValueParser;
use clap::{Args, ValueHint};
use delivery::WebSocketOptions;
use net::http_server::AccessToken;
use tracing::Level;
use uuid::Uuid;

use crate::delivery_args::DELIVERY;
use crate::failure::Failure;
use crate::files;
use crate::help::EXPERT;
use crate::messages;

/// Who may acknowledge events, and how long an acknowledgement may take.
#[derive(Clone, Debug, Args)]
pub struct ConsumerArgs {
    /// File with the token that clients which acknowledge events must know: 16 to 256 characters. It is required for an
    /// address that other machines reach [default: websocket.token in the state folder, made at the first start].
    #[arg(long, env = "WIREPROOF_WS_TOKEN_FILE", value_name = "FILE")]
    #[arg(value_hint = ValueHint::FilePath, help_heading = DELIVERY)]
    ws_token_file: Option<PathBuf>,
    /// Let every program on this machine that reaches the address read and acknowledge events, without a token.
    #[arg(long, env = "WIREPROOF_WS_WITHOUT_TOKEN", value_parser = FalseyValueParser::new())]
    #[arg(conflicts_with = "ws_token_file", help_heading = EXPERT)]
    ws_without_token: bool,
    /// Seconds after which an event that a client has not acknowledged is sent again.
    #[arg(long, env = "WIREPROOF_WS_ACK_SECONDS", value_name = "N", default_value_t = 60)]
    #[arg(value_parser = clap::value_parser!(u64).range(1..=86_400), help_heading = EXPERT)]
    ws_ack_seconds: u64,
}

impl ConsumerArgs {
    /// The options of the connections. `state` is the folder of a token that is made.
    ///
    /// # Errors
    /// If the address needs a token and has none, or the token cannot be read or made.
    pub fn options(&self, address: SocketAddr, state: &Path) -> Result<WebSocketOptions, Failure> {
        let mut options = WebSocketOptions::default();
        options.token = self.token(address, state)?;
        options.ack_timeout = Duration::from_secs(self.ws_ack_seconds);
        Ok(options)
    }

    /// The token that clients must know, as they acknowledge events.
    fn token(&self, address: SocketAddr, state: &Path) -> Result<Option<AccessToken>, Failure> {
        let is_loopback = address.ip().to_canonical().is_loopback();
        match &self.ws_token_file {
            Some(path) => files::read_token(path, "--ws-token-file").map(Some),
            None if !is_loopback => Err(Failure::Usage(format!(
                "ws://{address}: others can connect to this address: add --ws-token-file"
            ))),
            None if self.ws_without_token => {
                let text =
                    "--ws-without-token: every program of this machine can acknowledge events";
                messages::print(Level::WARN, text);
                Ok(None)
            }
            None => made_token(&state.join(TOKEN_FILE)).map(Some),
        }
    }
}

/// The token in a file of the state folder, which is made if it is missing.
fn made_token(path: &Path) -> Result<AccessToken, Failure> {
    files::create_secret(path, || {
        format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple())
    })?;
    messages::print(Level::INFO, &format!("clients of ws:// need the token in {}", path.display()));
    files::read_token(path, &path.display().to_string())
}

/// The file of the state folder with the token of WebSocket clients.
const TOKEN_FILE: &str = "websocket.token";

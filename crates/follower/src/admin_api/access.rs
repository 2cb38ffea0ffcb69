//! The address and the token of an admin API, for the run that serves it and for the commands that use it.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use tokio::io::{AsyncRead, AsyncWrite};

use crate::failure::Failure;
use crate::files;

/// The address of an admin API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AdminAddress {
    /// An address of IP.
    Tcp(SocketAddr),
    /// A Unix socket.
    #[cfg(unix)]
    Unix(PathBuf),
}

/// A connection, from either side.
pub type Stream = Box<dyn ByteStream>;

/// A socket of either kind.
pub trait ByteStream: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ByteStream for S {}

impl FromStr for AdminAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        #[cfg(unix)]
        if let Some(path) = text.strip_prefix("unix:") {
            return if path.is_empty() {
                Err("expected a path after unix:".to_owned())
            } else {
                Ok(Self::Unix(path.into()))
            };
        }
        text.parse().map(Self::Tcp).map_err(|_| {
            "expected an IP address and a port, as in 127.0.0.1:2490, or unix:PATH".to_owned()
        })
    }
}

impl fmt::Display for AdminAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            #[cfg(unix)]
            Self::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl AdminAddress {
    /// Whether only this machine reaches the address.
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().to_canonical().is_loopback(),
            #[cfg(unix)]
            Self::Unix(_) => true,
        }
    }
}

/// The token in this file, or else in the environment.
pub fn read_token(file: Option<&Path>) -> Result<String, Failure> {
    let from_environment = || std::env::var(VARIABLE).ok().filter(|token| !token.is_empty());
    match file {
        Some(path) => files::read_secret_text(path),
        None => from_environment().ok_or_else(|| {
            let text = format!("--admin needs a token: add --admin-token-file, or set {VARIABLE}");
            Failure::Usage(text)
        }),
    }
}

/// The variable with the token.
const VARIABLE: &str = "WIREPROOF_ADMIN_TOKEN";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_tcp_or_a_unix_socket() {
        let parse = |text: &str| text.parse::<AdminAddress>();
        for (text, is_local) in [("127.0.0.1:1", true), ("[::1]:1", true), ("0.0.0.0:1", false)] {
            let address = parse(text).unwrap();
            assert_eq!((address.to_string(), address.is_local()), (text.to_owned(), is_local));
        }
        #[cfg(unix)]
        assert_eq!(parse("unix:/run/a"), Ok(AdminAddress::Unix("/run/a".into())));
        for wrong in ["", "localhost:1", "127.0.0.1", "unix:", "http://127.0.0.1:1"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}

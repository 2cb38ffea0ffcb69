//! Processes that end with their owner, and addresses for them.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::process::Child;

/// A process that ends with its owner.
pub(super) struct Running(pub(super) Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address of this machine at which nothing listens.
pub(super) fn free_address() -> Result<SocketAddr, String> {
    let listener =
        TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(|error| error.to_string())?;
    listener.local_addr().map_err(|error| error.to_string())
}

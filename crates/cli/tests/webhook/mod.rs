//! The requests of a webhook, as a receiver reads them.

use std::io::{self, BufRead, BufReader, Read};
use std::net::TcpStream;

use serde_json::Value;

/// A request for one connection.
pub(crate) struct Request {
    headers: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl Request {
    /// Reads the request of a connection.
    ///
    /// # Errors
    /// If the connection ends before its body.
    pub(crate) fn read(stream: &TcpStream) -> io::Result<Self> {
        let mut stream = BufReader::new(stream);
        let mut headers = Vec::new();
        for line in stream.by_ref().lines() {
            match line? {
                line if line.is_empty() => break,
                line => headers.push(line),
            }
        }
        let mut request = Self { headers, body: Vec::new() };
        let len = request.header("content-length").and_then(|len| len.parse().ok());
        request.body.resize(len.ok_or(io::ErrorKind::UnexpectedEof)?, 0);
        stream.read_exact(&mut request.body)?;
        Ok(request)
    }

    /// The lines of the body, a JSON array.
    pub(crate) fn lines(&self) -> Vec<Value> {
        assert_eq!(self.header("content-type"), Some("application/json"));
        serde_json::from_slice(&self.body).unwrap()
    }

    /// The value of a header, whose name is in lower case.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find_map(|line| {
            let (found, value) = line.split_once(": ")?;
            found.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// A response without a body, after which the connection ends.
pub(crate) fn response(status: &str) -> String {
    format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n")
}

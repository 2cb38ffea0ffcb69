//! The HTTP client returns exactly the body that a response frames, within its limits; other responses are errors.

use bytes::Bytes;
use net::http::{Client, HttpError, Url};

use crate::loopback::{self, LIMITS};

/// Runs the target on one input: the first byte is the framing, the rest the body; or a whole response.
pub(crate) fn run(input: &[u8]) {
    let Some((framing, body)) = input.split_first() else { return };
    match framing % 4 {
        0 => {
            let _ = fetch(body.to_vec());
        }
        1 => assert_body(with_length(body, body.len()), body),
        2 => assert_body(in_chunks(body), body),
        _ => assert_truncated(body),
    }
}

/// Fetches a response, once with redirects and once without.
fn fetch(response: Vec<u8>) -> Result<Bytes, HttpError> {
    let read = async |client: &Client, url: &Url| {
        let redirected = client.get(url, &LIMITS).await;
        assert_bounded(redirected.map(|response| response.body));
        client.get_direct(url, &LIMITS).await.map(|response| response.body)
    };
    let body = loopback::exchange(|_| response.clone(), read);
    assert_bounded(body.clone());
    body
}

fn assert_bounded(body: Result<Bytes, HttpError>) {
    match body {
        Ok(body) => assert!(body.len() as u64 <= LIMITS.max_bytes),
        Err(error) => assert!(error.to_string().starts_with("localhost: "), "{error}"),
    }
}

/// A body arrives whole, or it exceeds the limit.
fn assert_body(response: Vec<u8>, body: &[u8]) {
    match fetch(response) {
        Ok(received) => assert_eq!(received, body),
        Err(error) => assert!(body.len() as u64 > LIMITS.max_bytes, "{error}"),
    }
}

/// A body that ends before its stated length is an error.
fn assert_truncated(body: &[u8]) {
    assert!(fetch(with_length(body, body.len() + 1)).is_err());
}

fn with_length(body: &[u8], stated: usize) -> Vec<u8> {
    [format!("HTTP/1.1 200 OK\r\ncontent-length: {stated}\r\n\r\n").as_bytes(), body].concat()
}

/// The body in chunks, as long as their first bytes.
fn in_chunks(mut body: &[u8]) -> Vec<u8> {
    let mut response = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n".to_vec();
    while let [first, ..] = body {
        let (chunk, rest) = body.split_at(body.len().min(usize::from(*first).max(1)));
        response.extend_from_slice(format!("{:x}\r\n", chunk.len()).as_bytes());
        response.extend_from_slice(&[chunk, b"\r\n"].concat());
        body = rest;
    }
    response.extend_from_slice(b"0\r\n\r\n");
    response
}

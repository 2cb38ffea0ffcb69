//! The page at `/`.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::*;
use crate::page::Page;

impl Serving {
    /// The head and the body of an answer.
    async fn page(&self, method: &str, headers: &str) -> (String, String) {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let request = format!("{method} / HTTP/1.1\r\nhost: localhost\r\n{headers}\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_owned(), body.to_owned())
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_is_served_with_its_policy_and_once_per_version() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |options| {
        options.page = Some(Page::new(HTML.as_bytes()));
    })
    .await;
    let (head, body) = serving.page("GET", "").await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    assert_eq!(body, HTML);
    let length = format!("content-length: {}", HTML.len());
    for header in [
        "content-type: text/html; charset=utf-8",
        "content-security-policy: default-src 'none'; script-src 'sha256-abc='; frame-ancestors 'none'",
        "cache-control: no-cache",
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        &length,
    ] {
        assert!(head.lines().any(|line| line == header), "{header} in {head}");
    }
    let (of_head, body) = serving.page("HEAD", "").await;
    assert!(of_head.lines().any(|line| line == length), "{of_head}");
    assert_eq!(body, "");
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    for (tags, status) in [
        (etag.to_owned(), 304),
        (format!("\"other\", W/{etag}"), 304),
        ("\"other\"".to_owned(), 200),
    ] {
        let (head, body) = serving.page("GET", &format!("if-none-match: {tags}\r\n")).await;
        assert!(head.starts_with(&format!("HTTP/1.1 {status}")), "{tags}: {head}");
        assert_eq!(body.is_empty(), status == 304);
    }
    let (head, _) = serving.page("POST", "").await;
    assert!(head.starts_with("HTTP/1.1 405"), "{head}");
    serving.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_the_page_says_in_one_line_how_to_get_it() {
    let folder = tempfile::tempdir().unwrap();
    let serving = Serving::start(folder.path(), |_| ()).await;
    let (head, body) = serving.page("GET", "").await;
    assert!(head.starts_with("HTTP/1.1 404"), "{head}");
    assert!(body.contains("cargo xtask page") && body.lines().count() == 1, "{body}");
    serving.stop().await;
}

const HTML: &str = "<!doctype html><meta http-equiv=\"Content-Security-Policy\" \
                    content=\"default-src 'none'; script-src 'sha256-abc='\"><title>Page</title>";

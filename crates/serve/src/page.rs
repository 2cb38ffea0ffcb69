//! The page at `/`, which verifies in a browser: its headers, and its answers.

use data_encoding::BASE64URL_NOPAD;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::header::{
    ALLOW, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderValue, IF_NONE_MATCH,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use kernels::sha256;
use net::http_server::{response, text_response};
use program::page::WITHOUT_PAGE;

/// A page that a [`Server`](crate::Server) has at `/`.
#[derive(Clone, Debug)]
pub struct Page {
    html: Bytes,
    policy: HeaderValue,
    etag: HeaderValue,
}

impl Page {
    /// A page of one file. It is sent with the content security policy that it states itself, which here forbids
    /// frames too; without one, nothing in it runs or loads.
    pub fn new(html: &'static [u8]) -> Self {
        let tag = BASE64URL_NOPAD.encode(&sha256::digest(html)[..18]);
        let etag = HeaderValue::try_from(format!("\"{tag}\"")).expect("it is base64");
        Self { html: Bytes::from_static(html), policy: policy(html), etag }
    }

    /// Whether the client has this page already.
    fn is_cached_by(&self, request: &Request<impl Sized>) -> bool {
        let known = request.headers().get_all(IF_NONE_MATCH).iter();
        let mut tags = known.flat_map(|tags| tags.as_bytes().split(|byte| *byte == b','));
        tags.any(|tag| {
            let tag = tag.trim_ascii();
            tag.strip_prefix(b"W/").unwrap_or(tag) == self.etag.as_bytes()
        })
    }
}

/// Answers a request for `/`.
pub(crate) fn respond(page: Option<&Page>, request: &Request<impl Sized>) -> Response<Full<Bytes>> {
    if request.method() != Method::GET && request.method() != Method::HEAD {
        let mut refused = text_response(StatusCode::METHOD_NOT_ALLOWED, "use GET");
        refused.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return refused;
    }
    let Some(page) = page else { return text_response(StatusCode::NOT_FOUND, WITHOUT_PAGE) };
    let mut answer = if page.is_cached_by(request) {
        response(StatusCode::NOT_MODIFIED, HTML, Bytes::new())
    } else {
        response(StatusCode::OK, HTML, page.html.clone())
    };
    let headers = answer.headers_mut();
    headers.insert(ETAG, page.etag.clone());
    headers.insert(CONTENT_SECURITY_POLICY, page.policy.clone());
    for (name, value) in [
        (CACHE_CONTROL, "no-cache"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (REFERRER_POLICY, "no-referrer"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    answer
}

/// The policy of a page.
fn policy(html: &[u8]) -> HeaderValue {
    let html = str::from_utf8(html).unwrap_or_default();
    let stated = html.split_once(POLICY).and_then(|(_, rest)| rest.split_once('"'));
    let stated = stated.map_or("default-src 'none'", |(policy, _)| policy);
    let policy = HeaderValue::try_from(format!("{stated}; frame-ancestors 'none'"));
    policy.unwrap_or(HeaderValue::from_static("default-src 'none'; frame-ancestors 'none'"))
}

const POLICY: &str = "<meta http-equiv=\"Content-Security-Policy\" content=\"";

const HTML: &str = "text/html; charset=utf-8";

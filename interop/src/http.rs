//! JSON requests over plain HTTP.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

/// A minimal JSON client.
#[derive(Clone, Debug)]
pub(crate) struct Http(reqwest::Client);

impl Default for Http {
    fn default() -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(REQUEST_TIMEOUT).build();
        Self(client.expect("a client without TLS"))
    }
}

impl Http {
    /// Whether `url` responds with success.
    pub(crate) async fn is_ok(&self, url: &str) -> bool {
        let response = self.0.get(url).send().await;
        response.is_ok_and(|response| response.status().is_success())
    }

    /// The JSON response to GET.
    pub(crate) async fn get(&self, url: &str, token: Option<&str>) -> Value {
        self.send(Method::GET, url, token, None).await
    }

    /// The JSON response to POST.
    pub(crate) async fn post(&self, url: &str, token: Option<&str>, body: &Value) -> Value {
        self.send(Method::POST, url, token, Some(body)).await
    }

    /// The answer to POST without a body.
    pub(crate) async fn post_nothing(&self, url: &str, token: &str) -> Value {
        self.send(Method::POST, url, Some(token), None).await
    }

    /// Posts a file of this media type.
    pub(crate) async fn post_file(
        &self,
        url: &str,
        token: &str,
        media_type: &str,
        file: Vec<u8>,
    ) -> Value {
        let request = self.request(Method::POST, url, Some(token), None);
        json_response(url, request.header("content-type", media_type).body(file)).await
    }

    /// The bytes of the response to GET.
    pub(crate) async fn bytes(&self, url: &str) -> Vec<u8> {
        let response = self.0.get(url).send().await.and_then(reqwest::Response::error_for_status);
        let response = response.unwrap_or_else(|error| panic!("{url}: {error}"));
        let body = response.bytes().await.unwrap_or_else(|error| panic!("{url}: {error}"));
        body.to_vec()
    }

    /// Whether POST succeeded; a server that goes away is a failure, not a panic.
    pub(crate) async fn try_post(&self, url: &str, token: &str, body: &Value) -> bool {
        let response = self.request(Method::POST, url, Some(token), Some(body)).send().await;
        response.is_ok_and(|response| response.status().is_success())
    }

    async fn send(
        &self,
        method: Method,
        url: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Value {
        json_response(url, self.request(method, url, token, body)).await
    }

    fn request(
        &self,
        method: Method,
        url: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> RequestBuilder {
        let request = self.0.request(method, url);
        let request = match token {
            Some(token) => request.header("authorization", token),
            None => request,
        };
        match body {
            Some(body) => request.header("content-type", "application/json").body(body.to_string()),
            None => request,
        }
    }
}

/// The JSON response to `request`, or null for an empty body.
async fn json_response(url: &str, request: RequestBuilder) -> Value {
    let response = request.send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    let status = response.status();
    let body = response.bytes().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    assert!(status.is_success(), "{url}: {status} {}", String::from_utf8_lossy(&body));
    if body.is_empty() {
        Value::Null
    } else {
        serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{url}: {error}"))
    }
}

/// The timeout of a request on a busy machine.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

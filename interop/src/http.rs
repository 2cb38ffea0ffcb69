//! JSON asked for and sent, over plain HTTP.

use std::time::Duration;

use reqwest::{Method, RequestBuilder};
use serde_json::Value;

/// A client of a few lines.
#[derive(Clone, Debug)]
pub(crate) struct Http(reqwest::Client);

impl Default for Http {
    fn default() -> Self {
        let client = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build();
        Self(client.expect("a client without TLS"))
    }
}

impl Http {
    /// Whether `url` answers with success.
    pub(crate) async fn is_well(&self, url: &str) -> bool {
        let answer = self.0.get(url).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    /// The answer to GET.
    pub(crate) async fn get(&self, url: &str, token: Option<&str>) -> Value {
        self.ask(Method::GET, url, token, None).await
    }

    /// The answer to POST.
    pub(crate) async fn post(&self, url: &str, token: Option<&str>, body: &Value) -> Value {
        self.ask(Method::POST, url, token, Some(body)).await
    }

    /// The answer to POST without a body.
    pub(crate) async fn post_nothing(&self, url: &str, token: &str) -> Value {
        self.ask(Method::POST, url, Some(token), None).await
    }

    /// Whether POST was answered with success, by somebody who may go away meanwhile.
    pub(crate) async fn try_post(&self, url: &str, token: &str, body: &Value) -> bool {
        let answer = self.request(Method::POST, url, Some(token), Some(body)).send().await;
        answer.is_ok_and(|answer| answer.status().is_success())
    }

    async fn ask(
        &self,
        method: Method,
        url: &str,
        token: Option<&str>,
        body: Option<&Value>,
    ) -> Value {
        answer(url, self.request(method, url, token, body)).await
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

/// The JSON that `request` is answered with, or null for an empty body.
async fn answer(url: &str, request: RequestBuilder) -> Value {
    let response = request.send().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    let status = response.status();
    let body = response.bytes().await.unwrap_or_else(|error| panic!("{url}: {error}"));
    assert!(status.is_success(), "{url}: {status} {}", String::from_utf8_lossy(&body));
    match body.is_empty() {
        true => Value::Null,
        false => serde_json::from_slice(&body).unwrap_or_else(|error| panic!("{url}: {error}")),
    }
}

/// How long an answer may take on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

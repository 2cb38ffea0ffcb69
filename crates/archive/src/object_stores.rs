//! Object stores by address: S3, Google Cloud Storage and Azure, with the options that their SDKs read from the environment.

use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use object_store::aws::{AmazonS3Builder, S3ConditionalPut};
use object_store::azure::MicrosoftAzureBuilder;
use object_store::gcp::GoogleCloudStorageBuilder;
use object_store::{BackoffConfig, Error, ObjectStore, RetryConfig};

use crate::error::ArchiveFault;

/// Opens the bucket or container of an address, without a request.
pub(crate) fn open(
    scheme: &str,
    bucket: &str,
    variables: &[(String, String)],
) -> Result<Arc<dyn ObjectStore>, ArchiveFault> {
    let store: Result<Arc<dyn ObjectStore>, Error> = match scheme {
        "s3" | "s3a" => {
            let builder = AmazonS3Builder::new().with_retry(retries());
            let builder = configure(builder, "AWS_", variables, AmazonS3Builder::with_config);
            // Without conditional puts, writers would overwrite each other's commits.
            let builder = builder.with_conditional_put(S3ConditionalPut::ETagMatch);
            builder.with_bucket_name(bucket).build().map(|store| Arc::new(store) as _)
        }
        "gs" => {
            let builder = GoogleCloudStorageBuilder::new().with_retry(retries());
            let builder =
                configure(builder, "GOOGLE_", variables, GoogleCloudStorageBuilder::with_config);
            builder.with_bucket_name(bucket).build().map(|store| Arc::new(store) as _)
        }
        "az" | "abfs" | "abfss" => {
            let builder = MicrosoftAzureBuilder::new().with_retry(retries());
            let builder =
                configure(builder, "AZURE_", variables, MicrosoftAzureBuilder::with_config);
            let builder = match value_of(variables, "IDENTITY_ENDPOINT") {
                Some(endpoint) => builder.with_msi_endpoint(endpoint),
                None => builder,
            };
            let builder = builder.with_url(format!("{scheme}://{bucket}"));
            builder.build().map(|store| Arc::new(store) as _)
        }
        _ => return Err(ArchiveFault::Address),
    };
    check_transport(variables)?;
    store.map_err(|error| ArchiveFault::Settings(error.to_string()))
}

/// Applies the variables whose names begin with `prefix` and name an option.
fn configure<B, K: FromStr>(
    builder: B,
    prefix: &str,
    variables: &[(String, String)],
    apply: impl Fn(B, K, String) -> B,
) -> B {
    let options = variables.iter().filter(|(name, _)| name.starts_with(prefix));
    options.fold(builder, |builder, (name, value)| match name.to_ascii_lowercase().parse() {
        Ok(key) => apply(builder, key, value.clone()),
        Err(_) => builder,
    })
}

/// Refuses an endpoint without TLS that the environment does not allow. The client would retry every request to it.
fn check_transport(variables: &[(String, String)]) -> Result<(), ArchiveFault> {
    for (endpoint, allow) in ENDPOINTS {
        let is_plain = value_of(variables, endpoint).is_some_and(|url| url.starts_with("http://"));
        let is_allowed = value_of(variables, allow).is_some_and(|value| {
            matches!(&*value.to_ascii_lowercase(), "1" | "true" | "on" | "yes" | "y")
        });
        if is_plain && !is_allowed {
            return Err(ArchiveFault::Settings(format!(
                "{endpoint} has no TLS: use https://, or set {allow}=true"
            )));
        }
    }
    Ok(())
}

fn value_of<'v>(variables: &'v [(String, String)], name: &str) -> Option<&'v str> {
    variables.iter().find(|(other, _)| other == name).map(|(_, value)| &**value)
}

/// How often a request is tried again: on 5xx, 429, connections that fail, and timeouts of requests that may be repeated.
fn retries() -> RetryConfig {
    let (init_backoff, max_backoff) = (Duration::from_millis(200), Duration::from_secs(5));
    RetryConfig {
        backoff: BackoffConfig { init_backoff, max_backoff, base: 2.0 },
        max_retries: 6,
        retry_timeout: Duration::from_secs(30),
    }
}

/// The variables with the URL of a store, with the variable that allows plain HTTP.
const ENDPOINTS: [(&str, &str); 6] = [
    ("AWS_ENDPOINT", "AWS_ALLOW_HTTP"),
    ("AWS_ENDPOINT_URL", "AWS_ALLOW_HTTP"),
    ("AWS_ENDPOINT_URL_S3", "AWS_ALLOW_HTTP"),
    ("AZURE_ENDPOINT", "AZURE_ALLOW_HTTP"),
    ("AZURE_STORAGE_ENDPOINT", "AZURE_ALLOW_HTTP"),
    ("GOOGLE_BASE_URL", "GOOGLE_ALLOW_HTTP"),
];

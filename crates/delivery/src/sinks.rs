//! The registry of sinks: which address type has the URIs of a scheme.

use std::fmt;
use std::sync::Arc;

use futures_util::future::BoxFuture;

use crate::any_sink::AnySink;
use crate::files::FileAddress;
#[cfg(feature = "kafka")]
use crate::kafka::KafkaAddress;
#[cfg(feature = "nats")]
use crate::nats::NatsAddress;
#[cfg(feature = "postgres")]
use crate::postgres::PostgresAddress;
use crate::sink_address::{OpenFailure, SinkAddress};
use crate::sink_options::SinkOptions;
use crate::sqlite::SqliteAddress;
use crate::webhook::WebhookAddress;

/// The sinks that URIs can name.
#[derive(Clone, Debug)]
pub struct Sinks(Vec<SinkKind>);

/// The sinks of one address type.
#[derive(Clone, Copy, Debug)]
struct SinkKind {
    schemes: &'static [&'static str],
    form: &'static str,
    /// Parses a URI; an error is the feature of the sinks, which this build does not have.
    parse: Result<Parse, &'static str>,
}

type Parse = fn(&str) -> Result<AnyAddress, String>;

impl Sinks {
    /// The sinks of this crate. Of a feature that this build does not have, the schemes alone are known.
    pub fn built_in() -> Self {
        let kinds = [
            SinkKind::of::<FileAddress>(),
            SinkKind::of::<SqliteAddress>(),
            #[cfg(feature = "postgres")]
            SinkKind::of::<PostgresAddress>(),
            #[cfg(not(feature = "postgres"))]
            SinkKind::missing(&["postgres", "postgresql"], "postgres://…", "postgres"),
            #[cfg(feature = "kafka")]
            SinkKind::of::<KafkaAddress>(),
            #[cfg(not(feature = "kafka"))]
            SinkKind::missing(&["kafka"], "kafka://HOST/TOPIC", "kafka"),
            #[cfg(feature = "nats")]
            SinkKind::of::<NatsAddress>(),
            #[cfg(not(feature = "nats"))]
            SinkKind::missing(&["nats"], "nats://HOST/PREFIX", "nats"),
            SinkKind::of::<WebhookAddress>(),
        ];
        Self(kinds.into())
    }

    /// These sinks and the sinks of the address type `A`, which come first where both have a scheme.
    #[must_use]
    pub fn with<A: SinkAddress>(mut self) -> Self {
        self.0.insert(0, SinkKind::of::<A>());
        self
    }

    /// The forms of the URIs of all sinks, for messages.
    pub fn forms(&self) -> impl Iterator<Item = &'static str> {
        self.0.iter().map(|kind| kind.form)
    }

    /// The address that a URI names.
    ///
    /// # Errors
    /// If no sink has its scheme, or the address is not valid.
    pub fn address(&self, uri: &str) -> Result<AnyAddress, UriError> {
        let (scheme, _) = uri.split_once(':').ok_or(UriError::UnknownScheme)?;
        let known = self.0.iter().find_map(|kind| {
            let scheme = kind.schemes.iter().find(|known| **known == scheme)?;
            Some((*scheme, kind.parse))
        });
        let (scheme, parse) = known.ok_or(UriError::UnknownScheme)?;
        let parse = parse.map_err(|feature| UriError::MissingFeature { scheme, feature })?;
        parse(uri).map_err(UriError::Address)
    }
}

impl SinkKind {
    fn of<A: SinkAddress>() -> Self {
        let parse: Parse = |uri| A::from_uri(uri).map(AnyAddress::from);
        Self { schemes: A::SCHEMES, form: A::FORM, parse: Ok(parse) }
    }

    #[cfg(not(all(feature = "postgres", feature = "kafka", feature = "nats")))]
    fn missing(
        schemes: &'static [&'static str],
        form: &'static str,
        feature: &'static str,
    ) -> Self {
        Self { schemes, form, parse: Err(feature) }
    }
}

/// Why a URI names no sink. No text repeats the URI, which may have a password.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UriError {
    /// It has no scheme, or one that no sink has.
    #[error("no sink has the scheme of this URI")]
    UnknownScheme,
    /// Its scheme is of a sink that this build does not have.
    #[error("{scheme}:// needs the feature `{feature}`, which this build does not have")]
    MissingFeature {
        /// The scheme.
        scheme: &'static str,
        /// The feature of this crate, and of `wireproof`.
        feature: &'static str,
    },
    /// The sink of the scheme has no such address.
    #[error("{0}")]
    Address(String),
}

/// An address of any type, and its properties before it is opened.
#[derive(Clone)]
#[non_exhaustive]
pub struct AnyAddress {
    /// The name of the consumer: see [`SinkAddress::consumer`].
    pub consumer: String,
    /// A warning for the operator.
    pub warning: Option<&'static str>,
    /// Whether its sinks store positions: see [`SinkAddress::STORES_POSITIONS`].
    pub stores_positions: bool,
    /// Whether its sinks need an HTTP client and a secret: see [`SinkAddress::SIGNS_REQUESTS`].
    pub signs_requests: bool,
    address: Arc<dyn ErasedAddress>,
}

impl<A: SinkAddress> From<A> for AnyAddress {
    fn from(address: A) -> Self {
        Self {
            consumer: address.consumer(),
            warning: address.warning(),
            stores_positions: A::STORES_POSITIONS,
            signs_requests: A::SIGNS_REQUESTS,
            address: Arc::new(address),
        }
    }
}

impl AnyAddress {
    /// Whether a sink with these options can refuse an event: see [`SinkAddress::can_refuse`].
    pub fn can_refuse(&self, options: &SinkOptions) -> bool {
        self.address.can_refuse(options)
    }

    /// Opens the sink: see [`SinkAddress::open`].
    ///
    /// # Errors
    /// If it cannot be opened.
    pub async fn open(&self, options: &SinkOptions) -> Result<AnySink, OpenFailure> {
        self.address.open(options).await
    }
}

impl fmt::Debug for AnyAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

/// The methods of [`SinkAddress`] that need the address, with boxed futures.
trait ErasedAddress: fmt::Debug + Send + Sync {
    fn can_refuse(&self, options: &SinkOptions) -> bool;
    fn open<'a>(&'a self, options: &'a SinkOptions) -> BoxFuture<'a, Result<AnySink, OpenFailure>>;
}

impl<A: SinkAddress> ErasedAddress for A {
    fn can_refuse(&self, options: &SinkOptions) -> bool {
        SinkAddress::can_refuse(self, options)
    }

    fn open<'a>(&'a self, options: &'a SinkOptions) -> BoxFuture<'a, Result<AnySink, OpenFailure>> {
        Box::pin(async move { Ok(SinkAddress::open(self, options).await?.into()) })
    }
}

#[cfg(test)]
mod tests;

//! A server of a few lines that speaks TLS on loopback, with an authority of its own.

use std::net::SocketAddr;
use std::sync::Arc;

use futures_util::SinkExt;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::accept_async;
use tokio_tungstenite::tungstenite::Message;

/// A certificate authority.
pub(crate) struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    pub(crate) fn named(name: &str) -> Self {
        let mut about = CertificateParams::new([]).unwrap();
        about.distinguished_name.push(DnType::CommonName, name);
        about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(about, KeyPair::generate().unwrap()).unwrap())
    }

    /// Its certificate, for clients that trust it.
    pub(crate) fn pem(&self) -> Vec<u8> {
        self.0.pem().into_bytes()
    }

    /// TLS for a server of this name, valid in these years.
    fn acceptor(&self, name: &str, years: [i32; 2]) -> TlsAcceptor {
        let key = KeyPair::generate().unwrap();
        let mut about = CertificateParams::new([name.to_owned()]).unwrap();
        about.not_before = rcgen::date_time_ymd(years[0], 1, 1);
        about.not_after = rcgen::date_time_ymd(years[1], 1, 1);
        let certificate = about.signed_by(&key, &self.0).unwrap();
        let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
        let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key);
        TlsAcceptor::from(Arc::new(config.unwrap()))
    }
}

/// A server's handling of a connection after the TLS handshake.
#[derive(Clone, Debug)]
pub(crate) enum Speaks {
    /// Upgrades to a WebSocket, says these, and then no more.
    Messages(Vec<Message>),
    /// Answers every request with this JSON.
    Json(String),
}

/// A server that is known as `localhost`.
pub(crate) async fn serve(authority: &Authority, speaks: Speaks) -> u16 {
    serve_as(authority, "localhost", NOW, speaks).await
}

/// A server whose certificate says this; its port.
pub(crate) async fn serve_as(
    authority: &Authority,
    name: &str,
    years: [i32; 2],
    speaks: Speaks,
) -> u16 {
    let acceptor = authority.acceptor(name, years);
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let (acceptor, speaks) = (acceptor.clone(), speaks.clone());
            tokio::spawn(async move {
                // A client that refuses the certificate disconnects.
                if let Ok(stream) = acceptor.accept(stream).await {
                    speak(stream, speaks).await;
                }
            });
        }
    });
    port
}

async fn speak(mut stream: TlsStream<TcpStream>, speaks: Speaks) {
    match speaks {
        Speaks::Messages(messages) => {
            let mut socket = accept_async(stream).await.unwrap();
            for message in messages {
                socket.send(message).await.unwrap();
            }
            std::future::pending().await
        }
        Speaks::Json(body) => {
            let len = body.len();
            let head = format!(
                "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {len}\r\n\r\n"
            );
            let mut request = [0; 4096];
            while stream.read(&mut request).await.is_ok_and(|len| len > 0) {
                stream.write_all(head.as_bytes()).await.unwrap();
                stream.write_all(body.as_bytes()).await.unwrap();
            }
        }
    }
}

/// Years in which a certificate is valid when this is run.
pub(crate) const NOW: [i32; 2] = [2000, 4000];

//! Logins of `follow --to kafka://…` that need a service of others: an identity provider, and a broker of Amazon MSK, both as
//! stand-ins of their protocols.

use std::io;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::server::TlsStream;
use wireproof_interop::kafka::Kafka;
use wireproof_interop::kit;

use crate::certificates::Certificates;
use crate::kafka::unsecured_token;
use crate::queue::{check_ends, small};

type Stream = TlsStream<tokio::net::TcpStream>;

/// Serves every connection at a port of `localhost`, and returns the port.
async fn serve<F>(certificates: &Certificates, serve: impl Fn(Stream) -> F + Send + 'static) -> u16
where
    F: Future<Output = io::Result<()>> + Send + 'static,
{
    let provider = Arc::new(aws_lc_rs::default_provider());
    let chain = vec![CertificateDer::from_pem_slice(certificates.server.as_bytes()).expect("PEM")];
    let key = PrivateKeyDer::from_pem_slice(certificates.server_key.as_bytes()).expect("PEM");
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions of TLS")
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .expect("a certificate with its key");
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("an address").port();
    tokio::spawn(async move {
        loop {
            let Ok((stream, _)) = listener.accept().await else { return };
            if let Ok(stream) = acceptor.accept(stream).await {
                tokio::spawn(serve(stream));
            }
        }
    });
    port
}

/// Answers a request for a token, and keeps its text.
async fn answer_with(
    token: String,
    seen: Arc<Mutex<String>>,
    mut stream: Stream,
) -> io::Result<()> {
    let (mut request, mut buffer) = (String::new(), [0; 4096]);
    // The form is the end of the request.
    while !request.contains("grant_type=client_credentials") {
        let read = stream.read(&mut buffer).await?;
        if read == 0 {
            return Ok(());
        }
        request.push_str(&String::from_utf8_lossy(buffer.get(..read).unwrap_or_default()));
    }
    *seen.lock().expect("no panic") = request;
    let body = format!(r#"{{"access_token":"{token}","token_type":"Bearer","expires_in":3600}}"#);
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length:";
    stream.write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes()).await?;
    stream.shutdown().await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_comes_from_an_identity_provider() {
    let kit = kit!(Kafka);
    let sasl = "sasl.enabled.mechanisms=OAUTHBEARER\n\
        listener.name.clients.oauthbearer.sasl.jaas.config=\
        org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required unsecuredLoginStringClaim_sub=\"broker\";\n";
    let kafka = Kafka::start(&kit, "SASL_PLAINTEXT", sasl).await;
    let certificates = Certificates::new();
    let file = |name: &str, text: &str| kafka.write_file(name, text).display().to_string();
    let (roots, secret) =
        (file("authority.pem", &certificates.authority), file("secret", "client-secret\n"));
    let (token, seen) = (unsecured_token(3600), Arc::<Mutex<String>>::default());
    let kept = seen.clone();
    let port =
        serve(&certificates, move |stream| answer_with(token.clone(), kept.clone(), stream)).await;
    let uri = format!("kafka://{}/none?sasl=oauthbearer", kafka.address());
    let endpoint = format!("{uri}&token_endpoint=https://localhost:{port}/token");
    let login = format!("{endpoint}&client_id=ada&client_secret_file={secret}&scope=events");
    let cases = [
        // The user is accepted, and the topic is missing.
        (format!("{login}&token_roots={roots}"), 4, "the topic none does not exist"),
        (login.clone(), 3, "kafka-127.0.0.1"),
        (endpoint.clone(), 2, "client_secret_file"),
        (format!("{endpoint}&client_id=a&client_secret=client-secret"), 2, "client_secret_file"),
    ];
    check_ends(&cases, &["client-secret&", "client-secret\"", "eyJhbGciOiJub25lIn0"]);
    let seen = seen.lock().expect("no panic").clone();
    assert!(seen.contains("scope=events"), "{seen}");
    // ada:client-secret.
    assert!(seen.contains("Basic YWRhOmNsaWVudC1zZWNyZXQ="), "{seen}");
}

/// Takes a client of Kafka through its authentication, keeps the mechanism and the client's messages, and leaves.
async fn authenticate(seen: Arc<Mutex<Vec<String>>>, mut stream: Stream) -> io::Result<()> {
    loop {
        let len = usize::try_from(stream.read_i32().await?).unwrap_or_default().min(1 << 16);
        let mut frame = vec![0; len];
        stream.read_exact(&mut frame).await?;
        let number = |at: usize| {
            frame.get(at..at + 2).map_or(0, |of| usize::from(of[0]) << 8 | usize::from(of[1]))
        };
        let correlation = frame.get(4..8).unwrap_or_default();
        // After the key, the version, the correlation and the name of the client.
        let body = frame.get(10 + number(8)..).unwrap_or_default();
        let answer = match (number(0), number(2)) {
            // Only version 0 is known, with which the versions of three requests are told.
            (18, version) => {
                let mut answer = if version == 0 { vec![0, 0] } else { vec![0, 35] };
                answer
                    .extend([0, 0, 0, 3, 0, 17, 0, 0, 0, 1, 0, 18, 0, 0, 0, 0, 0, 36, 0, 0, 0, 1]);
                answer
            }
            (17, _) => {
                seen.lock().expect("no panic").push(text(body.get(2..)));
                [&[0, 0, 0, 0, 0, 1, 0, 11][..], b"AWS_MSK_IAM"].concat()
            }
            (36, _) => {
                seen.lock().expect("no panic").push(text(body.get(4..)));
                return Ok(());
            }
            _ => return Ok(()),
        };
        stream.write_i32((4 + answer.len()) as i32).await?;
        stream.write_all(&[correlation, &answer].concat()).await?;
        stream.flush().await?;
    }
}

fn text(bytes: Option<&[u8]>) -> String {
    String::from_utf8_lossy(bytes.unwrap_or_default()).into_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_broker_of_amazon_gets_a_signature_by_the_credentials_in_the_environment() {
    let (certificates, folder) = (Certificates::new(), tempfile::tempdir().expect("a folder"));
    let roots = folder.path().join("authority.pem");
    std::fs::write(&roots, &certificates.authority).expect("a file");
    let seen = Arc::<Mutex<Vec<String>>>::default();
    let kept = seen.clone();
    let port = serve(&certificates, move |stream| authenticate(kept.clone(), stream)).await;
    let roots = roots.display();
    let uri =
        format!("kafka://localhost:{port}/none?sasl=aws-msk-iam&region=eu-west-1&roots={roots}");
    let delivered = small(&uri);
    let mut command = delivered.command();
    command.env("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE").env("AWS_SESSION_TOKEN", "session");
    let output =
        command.env("AWS_SECRET_ACCESS_KEY", "secret-key").output().expect("the command starts");
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.code() != Some(0) && !message.contains("secret-key"), "{message}");
    let seen = seen.lock().expect("no panic").clone();
    let [mechanism, payload, ..] = &*seen else { panic!("{seen:?}: {message}") };
    assert_eq!(mechanism, "AWS_MSK_IAM");
    let payload: Value = serde_json::from_str(payload).expect("JSON");
    assert_eq!(
        (&payload["host"], &payload["x-amz-security-token"]),
        (&"localhost".into(), &"session".into())
    );
    let credential = payload["x-amz-credential"].as_str().expect("a text");
    assert!(credential.starts_with("AKIDEXAMPLE/"), "{credential}");
    assert!(credential.ends_with("/eu-west-1/kafka-cluster/aws4_request"), "{credential}");
    assert!(!payload.to_string().contains("secret-key"), "{payload}");
}

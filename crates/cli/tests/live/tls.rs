//! Streams and directories over TLS, and trusted authorities.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair};
use simnet::servers::{Server, Simulation};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::pki_types::PrivatePkcs8KeyDer;

use crate::{lines, quiet, stderr, with_commits};

/// A TLS proxy as `localhost` for a server that speaks plain HTTP. It ends with the test.
struct TlsProxy {
    url: String,
}

impl TlsProxy {
    /// Starts the proxy, and writes the certificate of its authority to a file.
    fn start(sim: &Simulation, server: Server, authority: &Path) -> Self {
        let acceptor = acceptor(authority);
        let target = sim.port(server);
        let (port, started) = std::sync::mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.unwrap().block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                port.send(listener.local_addr().unwrap().port()).unwrap();
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(forward(acceptor.clone(), stream, target));
                }
            });
        });
        Self { url: format!("https://localhost:{}", started.recv().unwrap()) }
    }
}

async fn forward(acceptor: TlsAcceptor, stream: TcpStream, target: u16) {
    // A client that rejects the certificate, or has received enough, disconnects.
    let Ok(mut stream) = acceptor.accept(stream).await else { return };
    let Ok(mut server) = TcpStream::connect(("127.0.0.1", target)).await else { return };
    let _ = copy_bidirectional(&mut stream, &mut server).await;
}

fn acceptor(authority: &Path) -> TlsAcceptor {
    let mut about = CertificateParams::new([]).unwrap();
    let name = authority.file_name().unwrap().to_str().unwrap();
    about.distinguished_name.push(DnType::CommonName, name);
    about.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let issuer = CertifiedIssuer::self_signed(about, KeyPair::generate().unwrap()).unwrap();
    std::fs::write(authority, issuer.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let certificate = CertificateParams::new(["localhost".to_owned()]).unwrap();
    let certificate = certificate.signed_by(&key, &issuer).unwrap().der().clone();
    let key = PrivatePkcs8KeyDer::from(key.serialize_der()).into();
    let config = ServerConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key);
    TlsAcceptor::from(Arc::new(config.unwrap()))
}

fn wireproof(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_wireproof"));
    command.args(args).env("XDG_CONFIG_HOME", "/nonexistent");
    command
}

#[test]
fn a_stream_over_tls_is_followed_and_every_commit_verified() {
    let (sim, dir) = (with_commits(10), tempfile::tempdir().unwrap());
    let authority = dir.path().join("authority.pem");
    let relay = TlsProxy::start(&sim, Server::Relay(0), &authority);
    let (plc, state) = (sim.url(Server::Plc), dir.path().join("state"));
    let host = relay.url.replace("https:", "wss:");
    let mut follow = wireproof(&["follow", "--host", &host, "--plc", &plc, "--events", "10"]);
    follow.args(["--cursor", "oldest", "--development-trust-only"]).arg(&authority);
    follow.arg("--state").arg(state);
    let printed = lines(follow);
    assert_eq!(printed.len(), 10);
    assert!(printed.iter().all(|line| line["verdict"] == "verified" && line["host"] == relay.url));
}

#[test]
fn a_directory_is_used_over_tls_only_with_a_trusted_authority() {
    let (sim, dir) = (quiet(), tempfile::tempdir().unwrap());
    let [known, unknown] = ["known.pem", "unknown.pem"].map(|name| dir.path().join(name));
    let plc = TlsProxy::start(&sim, Server::Plc, &known);
    TlsProxy::start(&sim, Server::Plc, &unknown);
    let resolve = |authority: &Path| {
        let mut resolve = wireproof(&["resolve", &sim.account(0).did, "--plc", &plc.url]);
        resolve.arg("--development-trust-only").arg(authority).output().unwrap()
    };
    let output = resolve(&known);
    assert!(output.status.success(), "{}", stderr(&output));
    let output = resolve(&unknown);
    assert_eq!(output.status.code(), Some(3), "{}", stderr(&output));
    assert!(stderr(&output).contains("localhost"), "{}", stderr(&output));
    assert!(stderr(&output).contains("no trusted authority issued it"), "{}", stderr(&output));
}

#[test]
fn the_file_of_authorities_must_exist_and_have_a_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("empty.pem");
    let resolve = || {
        let mut resolve = wireproof(&["resolve", "ada.test", "--development-trust-only"]);
        resolve.arg(&file).output().unwrap()
    };
    assert_eq!(resolve().status.code(), Some(4));
    std::fs::write(&file, "").unwrap();
    let output = resolve();
    assert_eq!(output.status.code(), Some(2));
    let path = file.display();
    let expected =
        format!("--development-trust-only {path}: the given PEM contains no certificate");
    assert!(stderr(&output).contains(&expected), "{}", stderr(&output));
}

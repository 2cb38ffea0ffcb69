//! Certificates of an authority that no system knows.

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};

/// Texts in PEM form.
pub(crate) struct Certificates {
    pub(crate) authority: String,
    /// The certificate of a server that is called `localhost`.
    pub(crate) server: String,
    pub(crate) server_key: String,
    /// The certificate of a client that is called `ada`.
    pub(crate) client: String,
    pub(crate) client_key: String,
}

impl Certificates {
    pub(crate) fn new() -> Self {
        let authority_key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let authority = params.self_signed(&authority_key).expect("a certificate").pem();
        let issuer = Issuer::from_params(&params, &authority_key);
        let key = KeyPair::generate().expect("a key");
        let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
        let server = params.signed_by(&key, &issuer).expect("a certificate").pem();
        let client_key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name.push(DnType::CommonName, "ada");
        let client = params.signed_by(&client_key, &issuer).expect("a certificate").pem();
        let [server_key, client_key] = [&key, &client_key].map(KeyPair::serialize_pem);
        Self { authority, server, server_key, client, client_key }
    }
}

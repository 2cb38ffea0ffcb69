//! An operator of NATS with an account and a system account, whose users have credentials files.

use std::time::{SystemTime, UNIX_EPOCH};

use data_encoding::BASE64URL_NOPAD;
use nkeys::KeyPair;
use serde_json::{Value, json};

/// An operator, its accounts, and the configuration of a server that trusts it.
#[derive(Debug)]
pub struct Operator {
    key: KeyPair,
    account: KeyPair,
    system: KeyPair,
}

impl Default for Operator {
    fn default() -> Self {
        let [account, system] = [(); 2].map(|()| KeyPair::new_account());
        Self { key: KeyPair::new_operator(), account, system }
    }
}

impl Operator {
    /// The lines of configuration of a server.
    pub fn config(&self) -> String {
        let operator = json!({"type": "operator", "version": 2});
        let operator = signed(&self.key, &self.key.public_key(), &operator);
        let account = |key: &KeyPair, streams: i64| {
            let mut limits = json!({"subs": -1, "data": -1, "payload": -1, "imports": -1,
                "exports": -1, "wildcards": true, "conn": -1, "leaf": -1});
            if streams != 0 {
                for name in ["mem_storage", "disk_storage", "streams", "consumer"] {
                    limits[name] = streams.into();
                }
            }
            let nats = json!({"limits": limits, "default_permissions": {"pub": {}, "sub": {}},
                "type": "account", "version": 2});
            signed(&self.key, &key.public_key(), &nats)
        };
        let (id, system) = (self.account.public_key(), self.system.public_key());
        format!(
            "operator: {operator}\nsystem_account: {system}\nresolver: MEMORY\nresolver_preload: {{\n  {id}: {}\n  {system}: {}\n}}\n",
            account(&self.account, -1),
            account(&self.system, 0),
        )
    }

    /// A credentials file of a user who may not publish to these subjects.
    pub fn credentials(&self, denied: &[&str]) -> String {
        let user = KeyPair::new_user();
        let nats = json!({"pub": {"deny": denied}, "sub": {}, "subs": -1, "data": -1, "payload": -1,
            "type": "user", "version": 2});
        let token = signed(&self.account, &user.public_key(), &nats);
        let seed = user.seed().expect("a key with its seed");
        format!(
            "-----BEGIN NATS USER JWT-----\n{token}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        )
    }
}

/// A token of NATS, with claims about a subject.
fn signed(issuer: &KeyPair, subject: &str, nats: &Value) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock").as_secs();
    let claims = json!({"jti": subject, "iat": now, "iss": issuer.public_key(), "name": subject,
        "sub": subject, "nats": nats});
    let header = json!({"typ": "JWT", "alg": "ed25519-nkey"});
    let part = |value: &Value| BASE64URL_NOPAD.encode(value.to_string().as_bytes());
    let text = format!("{}.{}", part(&header), part(&claims));
    let signature = issuer.sign(text.as_bytes()).expect("a key with its seed");
    format!("{text}.{}", BASE64URL_NOPAD.encode(&signature))
}

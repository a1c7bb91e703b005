//! The process that has all pages in its pool, and sends the bare stream.

use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use tokio::net::TcpListener;

use crate::servers::{self, KEY};
use crate::{Arguments, bare};

/// The first argument of the process.
pub(crate) const ROLE: &str = "owner";

/// The process.
pub(crate) struct Owner {
    process: Child,
    /// The address at which it shares pages.
    pub(crate) address: String,
    /// The address at which it sends the bare stream.
    pub(crate) bare: String,
    process_id: u32,
}

impl Owner {
    pub(crate) fn start(directory: &Path, arguments: &Arguments) -> Self {
        let own = std::env::current_exe().unwrap();
        let mut words = arguments.owner_in.iter().map(Into::into).chain([own.into_os_string()]);
        let mut process = Command::new(words.next().unwrap())
            .args(words)
            .args([ROLE.as_ref(), directory.as_os_str(), arguments.owner_host.as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(process.stdout.take().unwrap()).lines();
        let mut line = || lines.next().unwrap().unwrap();
        let (address, bare, process_id) = (line(), line(), line().parse().unwrap());
        Self { process, address, bare, process_id }
    }

    pub(crate) fn process_id(&self) -> u32 {
        self.process_id
    }
}

impl Drop for Owner {
    fn drop(&mut self) {
        drop(self.process.stdin.take()); // It ends.
        self.process.wait().unwrap();
    }
}

pub(crate) fn write_keys(directory: &Path) {
    std::fs::write(directory.join(KEY), coscan_transport::new_key().unwrap()).unwrap();
    bare::write_certificate(directory);
}

/// Runs the process. It serves until its standard input is closed.
pub(crate) async fn serve(directory: &Path, host: &str) {
    let bare = TcpListener::bind((host, 0)).await.unwrap();
    let bare_address = bare.local_addr().unwrap();
    let (_manager, _transport, address) = servers::start(directory, host, Vec::new()).await;
    println!("{address}\n{bare_address}\n{}", std::process::id());
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    tokio::select! {
        _ = ended => {}
        () = bare::send(bare, directory) => {}
    }
}

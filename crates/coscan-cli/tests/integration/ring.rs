//! Several `coscan serve` processes that share reads, run by their command lines.
#![cfg(all(unix, feature = "server"))]

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::time::Duration;

use futures::future::join_all;
use tempfile::TempDir;
use tokio_postgres::{Client, NoTls};

use crate::program::{self, assert_has, coscan, run, stderr, stdout};

const SERVERS: usize = 3;
const FILES: i64 = 12;
const ROWS_OF_FILE: i64 = 50_000;

/// The number of rounds in which a server is killed, unless `COSCAN_RING_ROUNDS` sets it.
const ROUNDS: usize = 4;

/// A query that reads the whole table.
const QUERY: &str = "SELECT count(*), sum(n), sum(length(text)) FROM t";

struct Ring {
    directory: TempDir,
    /// The addresses at which the servers listen for each other.
    addresses: Vec<String>,
    mode: &'static str,
    servers: Vec<Server>,
}

struct Server {
    process: Child,
    postgres: u16,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
    }
}

impl Ring {
    async fn start(mode: &'static str) -> Self {
        let directory = TempDir::new().unwrap();
        let table = directory.path().join("t");
        std::fs::create_dir(&table).unwrap();
        for file in 0..FILES {
            let (first, last) = (file * ROWS_OF_FILE, (file + 1) * ROWS_OF_FILE - 1);
            let path = table.join(format!("{file:02}.parquet"));
            let rows = format!(
                "SELECT value AS n, 'row number ' || value AS text FROM generate_series({first}, {last})"
            );
            let copy = format!("COPY ({rows}) TO '{}'", path.display());
            stdout(&run(&["sql", "-q", "-e", &copy]));
        }
        std::fs::write(directory.path().join("ring.key"), stdout(&run(&["ring", "key"]))).unwrap();
        // All ports are bound at the same time, so that they differ.
        let ports: Vec<_> =
            (0..SERVERS).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses = ports.iter().map(|port| port.local_addr().unwrap().to_string()).collect();
        drop(ports);
        let mut ring = Self { directory, addresses, mode, servers: Vec::new() };
        ring.servers = (0..SERVERS).map(|server| ring.server(server)).collect();
        ring.all_connected().await;
        ring
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn server(&self, server: usize) -> Server {
        let table = format!("t={}", self.path("t").display());
        let text = |path: &Path| path.display().to_string();
        let mut command = coscan();
        command.args(["serve", "--insecure", "--listen-postgres", "127.0.0.1:0"]);
        command.args(["--table", &table]);
        command.args(["--memory-bytes", "256MB", "--ring-listen", &self.addresses[server]]);
        command.args(["--ring-mode", self.mode]);
        command.args(["--ring-store", &text(self.directory.path())]);
        command.args(["--ring-key", &text(&self.path("ring.key"))]);
        // The server finds the others through the first.
        command.args(["--ring-join", &self.addresses[0]]);
        let mut process = command.stderr(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(process.stderr.take().unwrap()).lines().map(Result::unwrap);
        let greeting = lines.find(|line| line.contains("clients connect with")).unwrap();
        let port = greeting.split("-p ").nth(1).unwrap().split(' ').next().unwrap();
        let postgres = port.parse().unwrap();
        std::thread::spawn(move || lines.for_each(drop)); // So that it can write its log.
        Server { process, postgres }
    }

    async fn all_connected(&self) {
        let others = SERVERS as i64 - 1;
        for server in &self.servers {
            let client = server.client().await;
            let connected = "SELECT count(*) FROM system.ring_nodes WHERE status = 'sharing'";
            while number(&client, connected).await < others {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
    }
}

impl Server {
    fn signal(&self, name: &str) {
        program::signal(&self.process, name);
    }

    async fn client(&self) -> Client {
        let settings = format!("host=127.0.0.1 port={} user=anyone dbname=coscan", self.postgres);
        let (client, connection) = tokio_postgres::connect(&settings, NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    async fn is_right(&self) -> bool {
        let row = self.client().await.query_one(QUERY, &[]).await.unwrap();
        let rows = FILES * ROWS_OF_FILE;
        let digits: i64 = (0..rows).map(|n| n.to_string().len() as i64).sum();
        let text = digits + rows * "row number ".len() as i64;
        (row.get::<_, i64>(0), row.get::<_, i64>(1), row.get::<_, i64>(2))
            == (rows, rows * (rows - 1) / 2, text)
    }

    async fn ring_bytes(&self, what: &str) -> i64 {
        let query = format!("SELECT value FROM system.pool WHERE name = 'ring_bytes_{what}'");
        number(&self.client().await, &query).await
    }
}

async fn number(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

fn rounds() -> usize {
    std::env::var("COSCAN_RING_ROUNDS").map_or(ROUNDS, |rounds| rounds.parse().unwrap())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn servers_get_pages_from_each_other_and_one_that_is_gone_costs_no_row() {
    come_and_go("direct").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_go_round_and_a_server_that_is_gone_costs_no_row() {
    come_and_go("circulate").await;
}

async fn come_and_go(mode: &'static str) {
    let mut ring = Ring::start(mode).await;
    let answers = join_all(ring.servers.iter().map(Server::is_right)).await;
    assert_eq!(answers, [true; SERVERS]);
    let mut sent = 0;
    for server in &ring.servers {
        assert!(server.ring_bytes("received").await > 0);
        sent += server.ring_bytes("sent").await; // By chance one of them may own nothing.
    }
    assert!(sent > 0);
    for round in 0..rounds() {
        // One server stays. Another one is killed, or hangs, while it is queried, and returns.
        let other = 1 + round % 2;
        let hangs = round / 2 % 2 == 1;
        let (stays, others) = ring.servers.split_first_mut().unwrap();
        let queries = join_all((0..4).map(|_| stays.is_right()));
        let trouble = async {
            match hangs {
                true => others[other - 1].signal("STOP"),
                false => others[other - 1].process.kill().unwrap(),
            }
        };
        let (answers, ()) = tokio::join!(queries, trouble);
        assert_eq!(answers, [true; 4], "round {round}");
        match hangs {
            true => ring.servers[other].signal("CONT"),
            false => ring.servers[other] = ring.server(other),
        }
        ring.all_connected().await;
        let answers = join_all(ring.servers.iter().map(Server::is_right)).await;
        assert_eq!(answers, [true; SERVERS], "round {round}");
    }
}

#[test]
fn settings_that_make_no_sense_are_named_together() {
    let check = ["serve", "--check", "--insecure", "--listen-postgres", "127.0.0.1:0"];
    let wrong = [
        "--ring-key=/nowhere/ring.key",
        "--ring-store=data",
        "--ring-ca=/nowhere/ca",
        "--ring-join=a",
    ];
    let text = stderr(&run(&[&check[..], &wrong].concat()));
    let parts = ["ring.listen", "ring.join", "ring.ca and ring.certificate", "/nowhere/ring.key"];
    assert_has(&text, &parts);
}

#[test]
fn the_demonstration_shows_what_each_mode_reads_and_leaves_no_server() {
    let directory = TempDir::new().unwrap();
    let (data, json) = (directory.path().display(), directory.path().join("ring.json"));
    let modes = "--modes off,direct,circulate";
    let demo =
        format!("ring demo {modes} --nodes 2 --streams 4 --queries 2 --scale 0.02 --data {data}");
    let slow = "--store-bandwidth 20MB --store-latency 1ms --pool-bytes 2500kB --one-server";
    let mut arguments: Vec<_> = demo.split(' ').chain(slow.split(' ')).collect();
    arguments.extend(["--json", json.to_str().unwrap()]);
    let table = stdout(&run(&arguments));
    assert!(table.contains("from other servers [MB]"), "{table}");
    let figures = program::json(&json);
    let figures = figures.as_array().unwrap();
    let modes: Vec<_> = figures.iter().map(|figures| figures["mode"].as_str().unwrap()).collect();
    assert_eq!(modes, ["off", "direct", "circulate", "one server"]);
    let peer_bytes = figures.iter().map(|figures| figures["peer_bytes"].as_u64().unwrap());
    let had_peers: Vec<_> = peer_bytes.map(|bytes| bytes > 0).collect();
    assert_eq!(had_peers, [false, true, true, false]);
    let in_vain: Vec<_> =
        figures.iter().map(|figures| figures["peer_bytes_in_vain"].as_u64().unwrap()).collect();
    assert!(
        in_vain[2] > in_vain[1],
        "what goes round passes some that do not want it: {in_vain:?}"
    );
    for of_mode in figures {
        let seconds = |name: &str| of_mode[name].as_f64().unwrap();
        assert!(0.0 < seconds("short_median_s"), "{of_mode}");
        assert!(seconds("short_median_s") <= seconds("short_p99_s"), "{of_mode}");
        let servers = if of_mode["mode"] == "one server" { 1 } else { 2 };
        assert_eq!(of_mode["server_s"].as_array().unwrap().len(), servers, "{of_mode}");
        assert_eq!(of_mode["answers_equal"], true, "{of_mode}");
        assert!(of_mode["store_bytes"].as_u64().unwrap() > 0, "{of_mode}");
        assert!(of_mode["total_s"].as_f64().unwrap() > 0.0, "{of_mode}");
    }
    #[cfg(target_os = "linux")]
    while runs_with(&data.to_string()) {
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Whether any process has a text in its arguments.
#[cfg(target_os = "linux")]
fn runs_with(text: &str) -> bool {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let arguments = processes.filter_map(|it| std::fs::read(it.path().join("cmdline")).ok());
    arguments.into_iter().any(|it| String::from_utf8_lossy(&it).contains(text))
}

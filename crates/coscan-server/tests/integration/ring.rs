//! The state of sharing servers, which only administrators see.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::time::Duration;

use crate::support::http::{basic, get};
use crate::support::server::{Running, ring, start_as};
use crate::support::{PASSWORD, ROWS};
use coscan_server::config::TableLocation;
use coscan_server::http::Sample;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_postgres::Client;

/// The number of files. Each is an extent, so that each server owns some of them.
const FILES: i64 = 24;

/// Two servers that share the table `many`, and the addresses by which they know each other.
struct Pair {
    first: Running,
    second: Running,
    addresses: [SocketAddr; 2],
}

impl Pair {
    async fn start() -> Self {
        // Both ports are bound at the same time, so that they differ.
        let ports = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").unwrap());
        let addresses = ports.map(|port| port.local_addr().unwrap());
        let [own, other] = addresses;
        let first = start_as(|config, directory| {
            config.ring = Some(ring(directory, own, other));
        })
        .await;
        let directory = first.tables.directory.path();
        std::fs::create_dir(directory.join("many")).unwrap();
        for file in 0..FILES {
            first.tables.write(&format!("many/{file:02}"), |rows| rows);
        }
        let many = format!("{}/", directory.join("many").display());
        let many = ("many".to_owned(), TableLocation::from(many));
        first.server.sql_service().open_tables(&BTreeMap::from([many.clone()])).await.unwrap();
        let second = start_as(|config, _| {
            config.ring = Some(ring(directory, other, own));
            config.tables.extend([many]);
        })
        .await;
        let pair = Self { first, second, addresses };
        for server in [&pair.first, &pair.second] {
            let root = server.login("root").await;
            let sharing = "SELECT count(*) FROM system.ring_nodes WHERE status = 'sharing'";
            while number(&root, sharing).await == 0 {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        }
        pair
    }

    /// Reads all rows on the second server.
    async fn read(&self) -> Client {
        let root = self.second.login("root").await;
        let sum: i64 = number(&root, "SELECT CAST(sum(id) AS BIGINT) FROM many").await;
        assert_eq!(sum, FILES * ROWS * (ROWS - 1) / 2);
        root
    }
}

async fn number(client: &Client, query: &str) -> i64 {
    client.query_one(query, &[]).await.unwrap().get(0)
}

async fn metrics(running: &Running, user: &str) -> String {
    let login = basic(user, PASSWORD);
    get(running.http, "/metrics", &[(login.0, &login.1)]).await.body
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tables_and_numbers_say_who_owns_and_sends_what() {
    let pair = Pair::start().await;
    let root = pair.read().await;
    let [other, own] = pair.addresses.map(|address| address.to_string());
    let nodes = "SELECT address, zone, status, extents_owned, bytes_owned, bytes_received, bytes_sent \
                 FROM system.ring_nodes";
    let nodes = root.query(nodes, &[]).await.unwrap();
    let texts = nodes.iter().map(|node| [0, 1, 2].map(|column| node.get::<_, String>(column)));
    let named =
        |address: &String, status: &str| [address.clone(), "here".to_owned(), status.to_owned()];
    assert!(texts.eq([named(&own, "this server"), named(&other, "sharing")]), "{nodes:?}");
    let integers = |row: usize| [3, 4, 5, 6].map(|column| nodes[row].get::<_, i64>(column));
    let ([own_extents, own_bytes, ..], [extents, bytes, received, sent]) =
        (integers(0), integers(1));
    assert!(own_extents > 0 && extents > 0 && own_extents + extents == FILES);
    // Only `id` is read. `word` has some bytes, too.
    assert!(0 < received && received < bytes && sent == 0, "{received} of {bytes}");

    let pages = "SELECT count(*), CAST(sum(bytes) AS BIGINT), CAST(sum(bytes_in_pool) AS BIGINT), \
                 CAST(sum(rows) AS BIGINT), CAST(sum(pages_in_pool) AS BIGINT), \
                 CAST(sum(pages_at_owner) AS BIGINT), min(runner_up), min(file) \
                 FROM system.ring_pages WHERE owner = $1";
    for (owner, runner_up, extents, bytes) in
        [(&own, &other, own_extents, own_bytes), (&other, &own, extents, bytes)]
    {
        let row = root.query_one(pages, &[owner]).await.unwrap();
        let [count, all, pooled, rows, pages, at_owner] =
            [0, 1, 2, 3, 4, 5].map(|column| row.get::<_, i64>(column));
        assert_eq!((count, all, rows), (extents, bytes, extents * ROWS));
        assert!(0 < pooled && pooled < all && pages > 0);
        assert!(owner == &other || at_owner == pages, "what it owns and has");
        assert!(owner == &own || pooled == received);
        assert_eq!(row.get::<_, &str>(6), runner_up);
        let file = row.get::<_, &str>(7);
        assert!(file.starts_with("file:///") && file.ends_with(".parquet"), "{file}");
    }

    let metrics = metrics(&pair.second, "root").await;
    for line in [
        format!("coscan_ring_peer_received_bytes_total{{peer=\"{other}\"}} {received}"),
        format!("coscan_ring_received_bytes_total {received}"),
        format!("coscan_ring_peer_sent_bytes_total{{peer=\"{other}\"}} 0"),
        "coscan_ring_nodes_sharing 1".to_owned(),
    ] {
        assert!(metrics.lines().any(|shown| shown == line), "{line} in {metrics}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_learn_of_no_other_server_and_no_file() {
    let pair = Pair::start().await;
    let ann = pair.first.login("ann").await;
    for table in ["ring_nodes", "ring_pages"] {
        assert_eq!(number(&ann, &format!("SELECT count(*) FROM system.{table}")).await, 0);
    }
    let seen = metrics(&pair.first, "ann").await;
    assert!(seen.contains("coscan_ring_nodes_sharing 1"), "totals are for all: {seen}");
    assert!(!seen.contains(&pair.addresses[1].to_string()), "{seen}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_window_shows_the_servers() {
    let pair = Pair::start().await;
    let root = pair.read().await;
    let login = basic("root", PASSWORD);
    let mut tcp = BufReader::new(TcpStream::connect(pair.second.http).await.unwrap());
    let request = format!("GET /events HTTP/1.1\r\nhost: x\r\n{}: {}\r\n\r\n", login.0, login.1);
    tcp.write_all(request.as_bytes()).await.unwrap();
    let mut lines = tcp.lines();
    let sample = loop {
        let line = lines.next_line().await.unwrap().unwrap();
        if let Some(data) = line.strip_prefix("data: ") {
            break serde_json::from_str::<Sample>(data).unwrap();
        }
    };
    let servers = sample.servers.unwrap();
    let [own, other] = &servers.rows[..] else { panic!("{servers:?}") };
    assert_eq!((servers.count, &*own.status, &*other.status), (2, "this server", "sharing"));
    assert_eq!(own.bytes_owned + other.bytes_owned, servers.bytes_shared);
    let received = "SELECT bytes_received FROM system.ring_nodes WHERE status = 'sharing'";
    assert_eq!(other.bytes_received as i64, number(&root, received).await);
    assert_eq!(own.extents + other.extents, FILES as u64);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_alone_has_empty_tables() {
    let running = start_as(|_, _| ()).await;
    let root = running.login("root").await;
    for table in ["ring_nodes", "ring_pages"] {
        assert_eq!(number(&root, &format!("SELECT count(*) FROM system.{table}")).await, 0);
    }
    assert!(!metrics(&running, "root").await.contains("coscan_ring"));
}

//! Queries over several workers, each a server of its own.

use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::time::Duration;

use coscan_server::config::{TableLocation, Workers};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, SimpleQueryMessage};

use crate::support::server::{Running, start_as};
use crate::support::{ROWS, in_time};

/// The number of files, so that each worker owns some.
const FILES: i64 = 24;

/// A coordinator, and the workers that it divides queries among.
struct Cluster {
    coordinator: Running,
    workers: Vec<Option<Running>>,
    addresses: Vec<SocketAddr>,
    /// A server whose directory has the files and the key.
    _files: Running,
}

impl Cluster {
    async fn start(count: usize) -> Self {
        // All ports are bound at the same time, so that they differ.
        let ports: Vec<_> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let addresses: Vec<_> = ports.iter().map(|port| port.local_addr().unwrap()).collect();
        drop(ports);
        let data = start_as(|_, _| {}).await;
        let directory = data.tables.directory.path().to_owned();
        let key = directory.join("cluster.key");
        std::fs::write(&key, coscan_transport::new_key().unwrap()).unwrap();
        let mut workers = Vec::new();
        for address in &addresses {
            let as_worker = worker(&key, &directory, *address);
            workers.push(Some(start_as(|config, _| config.workers = Some(as_worker)).await));
        }
        let members = addresses.iter().map(ToString::to_string).collect();
        let coordinator =
            Workers { members, key: Some(key), divided_bytes_min: Some(0), ..Workers::default() };
        let coordinator = start_as(|config, _| config.workers = Some(coordinator)).await;
        std::fs::create_dir(directory.join("many")).unwrap();
        for file in 0..FILES {
            data.tables.write(&format!("many/{file:02}"), |rows| rows);
        }
        let many = format!("{}/", directory.join("many").display());
        let many = BTreeMap::from([("many".to_owned(), TableLocation::from(many))]);
        coordinator.server.sql_service().open_tables(&many).await.unwrap();
        Self { coordinator, workers, addresses, _files: data }
    }

    /// A session whose queries are divided.
    async fn session(&self) -> Client {
        let client = self.coordinator.login("root").await;
        client.batch_execute("SET coscan.distributed = on").await.unwrap();
        client
    }

    /// The bytes that each worker has read.
    fn bytes_read(&self) -> Vec<u64> {
        let workers = self.workers.iter().flatten();
        workers.map(|worker| worker.server.sql_service().manager().report().bytes_read).collect()
    }
}

fn worker(key: &Path, directory: &Path, listen: SocketAddr) -> Workers {
    Workers {
        listen: Some(listen),
        stores: vec![directory.display().to_string()],
        key: Some(key.to_owned()),
        ..Workers::default()
    }
}

const QUERY: &str =
    "SELECT word, count(*), CAST(sum(id) AS BIGINT) FROM many GROUP BY word ORDER BY word";

async fn texts(client: &Client, query: &str) -> Vec<Vec<String>> {
    let messages = client.simple_query(query).await.unwrap();
    let row = |message: &SimpleQueryMessage| match message {
        SimpleQueryMessage::Row(row) => Some(
            (0..row.len()).map(|column| row.get(column).unwrap_or("NULL").to_owned()).collect(),
        ),
        _ => None,
    };
    messages.iter().filter_map(row).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_share_the_reads_of_a_query_and_explain_names_them() {
    let cluster = Cluster::start(3).await;
    let alone = cluster.coordinator.login("root").await;
    let right = texts(&alone, QUERY).await;
    let client = cluster.session().await;
    assert_eq!(texts(&client, QUERY).await, right);
    assert!(cluster.bytes_read().iter().all(|bytes| *bytes > 0), "{:?}", cluster.bytes_read());
    let stages = plan(&client, QUERY).await;
    for address in &cluster.addresses {
        assert!(stages.contains(&format!("owner=http://{address}")), "{stages}");
    }
    let analyzed = texts(&client, &format!("EXPLAIN ANALYZE {QUERY}")).await;
    assert!(analyzed.iter().any(|row| row[1].contains("TaskScan")), "{analyzed:?}");
    let reason = plan(&client, "SELECT * FROM many LIMIT 3").await;
    assert!(reason.starts_with("not distributed: only the first few rows"), "{reason}");
    // Functions that only the server limits, or that depend on the session, stay with it.
    for query in [
        "SELECT word || 'x' AS w, count(*) FROM many GROUP BY 1 ORDER BY 1",
        "SELECT max(length(repeat(word, 3))) FROM many",
        "SELECT max(current_setting('coscan.weight')), count(*) FROM many GROUP BY word ORDER BY 2",
    ] {
        assert_eq!(texts(&client, query).await, texts(&alone, query).await, "{query}");
    }
    let known = texts(&client, "SELECT address, status, reason FROM system.workers").await;
    let healthy = |address: &SocketAddr| [address.to_string(), "healthy".into(), "NULL".into()];
    let mut healthy: Vec<_> = cluster.addresses.iter().map(healthy).collect();
    healthy.sort_unstable();
    assert_eq!(known, healthy);
    let sum = texts(&client, "SELECT CAST(sum(id) AS BIGINT) FROM many").await;
    assert_eq!(sum, [[(FILES * ROWS * (ROWS - 1) / 2).to_string()]]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn answers_stay_right_as_workers_leave() {
    let mut cluster = Cluster::start(3).await;
    let client = cluster.session().await;
    let right = texts(&client, QUERY).await;
    // One stops as it should. The others are lost without a word, one after the other.
    for lost in 0..3 {
        let worker = cluster.workers[lost].take().unwrap();
        match lost {
            0 => {
                worker.server.stop(Duration::from_secs(10), std::future::pending()).await;
            }
            _ => drop(worker),
        }
        assert_eq!(texts(&client, QUERY).await, right);
        // Soon it is known that it is gone.
        let owner = format!("owner=http://{}", cluster.addresses[lost]);
        let is_known = async {
            while plan(&client, QUERY).await.contains(&owner) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        in_time(is_known).await;
    }
    // Without workers, the server executes it itself.
    let is_known = async {
        while !plan(&client, QUERY).await.starts_with("not distributed: no worker answers") {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    in_time(is_known).await;
    assert_eq!(texts(&client, QUERY).await, right);
}

/// The distributed plan of a query.
async fn plan(client: &Client, query: &str) -> String {
    let plan = texts(client, &format!("EXPLAIN {query}")).await;
    plan.into_iter().find(|row| row[0] == "distributed_plan").unwrap().remove(1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_workers_says_so() {
    let server = start_as(|_, _| {}).await;
    let client = server.login("root").await;
    client.batch_execute("SET coscan.distributed = on").await.unwrap();
    let plan = plan(&client, "SELECT count(*) FROM numbers").await;
    assert_eq!(plan, "not distributed: this server has no workers; name them in workers.members");
    assert!(texts(&client, "SELECT * FROM system.workers").await.is_empty());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stranger_learns_nothing_of_a_worker() {
    let cluster = Cluster::start(1).await;
    let mut stranger = TcpStream::connect(cluster.addresses[0]).await.unwrap();
    stranger.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
    let mut answer = Vec::new();
    stranger.read_to_end(&mut answer).await.ok();
    // An alert of TLS has seven bytes.
    assert!(answer.len() <= 7, "{answer:?}");
    // Another key is another cluster.
    let directory = cluster.coordinator.tables.directory.path();
    let key: PathBuf = directory.join("other.key");
    std::fs::write(&key, coscan_transport::new_key().unwrap()).unwrap();
    let other = Workers {
        members: vec![cluster.addresses[0].to_string()],
        key: Some(key),
        divided_bytes_min: Some(0),
        ..Workers::default()
    };
    let other = start_as(|config, _| config.workers = Some(other)).await;
    let client = other.login("root").await;
    client.batch_execute("SET coscan.distributed = on").await.unwrap();
    let plan = texts(&client, "EXPLAIN SELECT count(*) FROM numbers").await;
    let reason = plan.iter().find(|row| row[0] == "distributed_plan").unwrap();
    assert_eq!(
        reason[1],
        "not distributed: no worker answers with the version of this server; see system.workers"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn workers_keep_to_the_memory_that_a_session_allows() {
    let cluster = Cluster::start(2).await;
    let client = cluster.session().await;
    let query = "SELECT max(n) FROM (SELECT id, word, count(*) AS n FROM many GROUP BY 1, 2)";
    let right = texts(&client, query).await;
    client.batch_execute("SET coscan.memory_limit = '32kB'").await.unwrap();
    let error = client.simple_query(query).await.unwrap_err();
    let error = error.as_db_error().unwrap();
    assert_eq!(error.code(), &SqlState::OUT_OF_MEMORY, "{error}");
    assert!(error.message().contains("on a worker, the query holds"), "{error}");
    client.batch_execute("RESET coscan.memory_limit").await.unwrap();
    assert_eq!(texts(&client, query).await, right);
}

//! The dashboard with generated queries on a slow store:
//! `cargo run --release -p coscan-server --example dashboard [ADDRESS]`.
//!
//! Sixteen queries at a time read some columns and rows of a table in memory, behind a store as slow as a disk of 100
//! MB/s, with a pool for a quarter of the table.

use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arrow_array::{ArrayRef, Int64Array, RecordBatch};
use coscan_runtime::core::Order;
use coscan_runtime::storage::table::{FileOptions, ParquetTable, TableFile};
use coscan_runtime::{BufferManager, Options, ScanLabel, ScanRequest, SharedTable};
use coscan_server::http::{DashboardState, router};
use futures::StreamExt;
use object_store::memory::InMemory;
use object_store::path::Path;
use object_store::throttle::{ThrottleConfig, ThrottledStore};
use object_store::{ObjectStore, ObjectStoreExt};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use tokio::net::TcpListener;

const COLUMNS: [&str; 10] = [
    "orderkey", "partkey", "suppkey", "quantity", "price", "discount", "tax", "shipped", "flag",
    "comment",
];
const CHUNKS: u64 = 200;
const CHUNK_ROWS: u64 = 20_000;
const QUERIES: u64 = 16;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:8080".to_owned());
    let parsed = address.parse();
    let address: SocketAddr =
        parsed.map_err(|_| format!("{address} is no address such as 127.0.0.1:8080"))?;
    let table_bytes = CHUNKS * CHUNK_ROWS * COLUMNS.len() as u64 * 8;
    let options = Options::with_pool_bytes(table_bytes / 4, table_bytes / 4);
    let manager = BufferManager::new(options)?;
    let table = table(&manager).await?;
    for stream in 0..QUERIES {
        let (manager, table) = (manager.clone(), table.clone());
        tokio::spawn(async move {
            if let Err(error) = queries(manager, table, stream).await {
                eprintln!("stream {stream} of queries ended: {error}");
            }
        });
    }
    let listener = TcpListener::bind(address).await;
    let listener = listener.map_err(|error| {
        format!("cannot listen on {address}: {error}; name another address as the argument")
    })?;
    println!("open http://{address}/ in a browser");
    axum::serve(listener, router(DashboardState::new(manager))).await?;
    Ok(())
}

/// Numbers that look random, the same in every run.
fn mixed(number: u64) -> u64 {
    let number = (number ^ (number >> 31)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (number ^ (number >> 29)).wrapping_mul(0xbf58_476d_1ce4_e5b9) >> 16
}

async fn table(manager: &BufferManager) -> Result<SharedTable, Box<dyn Error>> {
    let column = |column: u64| -> ArrayRef {
        let rows = 0..CHUNKS * CHUNK_ROWS;
        Arc::new(Int64Array::from_iter_values(rows.map(|row| mixed(row * 31 + column) as i64)))
    };
    let columns = COLUMNS.iter().zip(0..).map(|(name, index)| (*name, column(index)));
    let batch = RecordBatch::try_from_iter(columns)?;
    let properties = WriterProperties::builder()
        .set_max_row_group_row_count(Some(CHUNK_ROWS as usize))
        .set_dictionary_enabled(false)
        .build();
    let mut writer = ArrowWriter::try_new(Vec::new(), batch.schema(), Some(properties))?;
    writer.write(&batch)?;
    let files = InMemory::new();
    let path = Path::from("lineitem.parquet");
    files.put(&path, writer.into_inner()?.into()).await?;
    let meta = files.head(&path).await?;
    let slow = ThrottleConfig {
        wait_get_per_call: Duration::from_millis(2),
        wait_get_per_byte: Duration::from_nanos(10 * 4),
        ..ThrottleConfig::default()
    };
    let store: Arc<dyn ObjectStore> = Arc::new(ThrottledStore::new(files, slow));
    let file = TableFile { store, store_url: "memory:///".parse()?, meta };
    let options = FileOptions { chunk_rows: CHUNK_ROWS, ..FileOptions::default() };
    Ok(manager.register(Arc::new(ParquetTable::open(vec![file], options).await?)))
}

/// One query after another: a hundredth, a tenth, half or all of the table, some in order.
async fn queries(
    manager: BufferManager,
    table: SharedTable,
    stream: u64,
) -> Result<(), Box<dyn Error + Send + Sync>> {
    for query in 0.. {
        let number = mixed(stream * 1000 + query);
        tokio::time::sleep(Duration::from_millis(number % 3000)).await;
        let rows = CHUNKS * CHUNK_ROWS;
        let wanted = [rows / 100, rows / 10, rows / 2, rows][(number / 7 % 4) as usize];
        let start = mixed(number) % (rows - wanted + 1);
        let first = (number / 64 % 6) as usize;
        let label =
            ScanLabel { query: Some(format!("q{}", stream * 100 + query).into()), table: None };
        let request = ScanRequest {
            rows: std::iter::once(start..start + wanted).collect(),
            order: if number.is_multiple_of(5) { Order::InOrder } else { Order::Any },
            label,
            ..ScanRequest::of_columns(
                &table,
                (first..first + 1 + (number / 512 % 4) as usize).collect(),
            )
        };
        let scan = manager.start_scan(&table, request)?;
        let mut batches = scan.worker(0);
        while let Some(batch) = batches.next().await {
            drop(batch?);
            tokio::time::sleep(Duration::from_micros(number % 900)).await;
        }
    }
    Ok(())
}

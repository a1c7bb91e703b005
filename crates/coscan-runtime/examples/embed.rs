//! Two scans of one Parquet table share its reads:
//! `cargo run -p coscan-runtime --example embed -- FILE.parquet`

use std::sync::Arc;

use coscan_runtime::storage::{stores::Stores, table::ParquetTable};
use coscan_runtime::{BufferManager, Options};
use futures::TryStreamExt;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let location = std::env::args().nth(1).ok_or("name a Parquet file, directory or pattern")?;

    let table =
        ParquetTable::open_locations(&Stores::new(), &[location], Default::default()).await?;
    let manager = BufferManager::new(Options::default())?;
    let table = manager.register(Arc::new(table));

    let all_rows = 0..table.table().layout().row_count();
    let all_rows = std::slice::from_ref(&all_rows);
    let (first, second) =
        (manager.scan(&table, &[0], all_rows)?, manager.scan(&table, &[0], all_rows)?);
    let count = |rows, batch: arrow_array::RecordBatch| async move { Ok(rows + batch.num_rows()) };
    let rows = futures::try_join!(first.try_fold(0, count), second.try_fold(0, count))?;

    println!("{rows:?} rows, {} bytes of pages held", manager.report().pool_held_bytes);
    Ok(())
}

//! Managed tables: `INSERT`, `UPDATE`, `DELETE`, `MERGE`, and what statements see meanwhile.

mod changes;
mod checkpoints;
mod concurrent;
mod durable;
mod random_changes;
mod refused;
mod results;

use coscan_datafusion::{CoscanOptions, ManagedDatabase, ManagedTable};
use coscan_runtime::BufferManager;
use coscan_runtime::core::PolicyKind;
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::prelude::SessionContext;

use crate::support::{TABLE_OPTIONS, manager, run, shared};

/// More rows than a statement keeps in memory, so that they are in a file.
const MANY: i64 = 70_000;

/// A database, and a session with its table `t` (id BIGINT NOT NULL, key BIGINT, text VARCHAR).
struct Fixture {
    manager: BufferManager,
    database: ManagedDatabase,
    context: SessionContext,
}

fn columns() -> Schema {
    Schema::new(vec![
        Field::new("id", DataType::Int64, false),
        Field::new("key", DataType::Int64, true),
        Field::new("text", DataType::Utf8, true),
    ])
}

impl Fixture {
    async fn new() -> Self {
        let manager = manager(PolicyKind::Relevance);
        let coscan =
            CoscanOptions::new(&manager).with_table_options(TABLE_OPTIONS).with_direct_bytes_max(0);
        let database = ManagedDatabase::in_memory(coscan);
        let context = shared(&manager);
        let fixture = Self { manager, database, context };
        fixture.create("t").await;
        fixture
    }

    /// A table whose first rows are in a file, and one row in memory.
    async fn filled() -> Self {
        let fixture = Self::new().await;
        fixture.run(&load("t", 0..MANY)).await;
        fixture.run("INSERT INTO t VALUES (-1, NULL, 'in memory')").await;
        fixture
    }

    async fn create(&self, name: &str) -> ManagedTable {
        let table = self.database.create_table(name, &columns()).await.unwrap();
        self.context.register_table(name, std::sync::Arc::new(table.clone())).unwrap();
        table
    }

    /// Another session with the same tables.
    fn session(&self) -> SessionContext {
        let context = shared(&self.manager);
        for name in
            self.context.catalog("datafusion").unwrap().schema("public").unwrap().table_names()
        {
            let table = futures::executor::block_on(self.context.table_provider(&*name)).unwrap();
            context.register_table(&*name, table).unwrap();
        }
        context
    }

    async fn run(&self, sql: &str) -> Vec<String> {
        run(&self.context, sql).await
    }

    async fn error(&self, sql: &str) -> String {
        let planned = self.context.sql(sql).await;
        let executed = match planned {
            Ok(planned) => planned.collect().await.map(drop),
            Err(error) => Err(error),
        };
        executed.expect_err(sql).to_string()
    }
}

/// A statement that inserts rows with `key = id % 10`.
fn load(table: &str, ids: std::ops::Range<i64>) -> String {
    format!(
        "INSERT INTO {table} SELECT value, value % 10, concat('text ', value) FROM range({}, {})",
        ids.start, ids.end
    )
}

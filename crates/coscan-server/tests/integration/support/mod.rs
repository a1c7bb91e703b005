//! A server's SQL service on a small table.

pub(crate) mod http;
pub(crate) mod server;
pub(crate) mod values;
pub(crate) mod wire;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Int64Array, RecordBatch, StringArray};
use coscan_runtime::{BufferManager, Options};
use coscan_server::config::{Limits, TableLocation};
use coscan_server::sql::SqlService;
use coscan_server::users::{Users, Verifier, entry};
use coscan_testing::write_parquet;
use parquet::file::properties::WriterProperties;
use tempfile::TempDir;

/// The number of rows of each table.
pub(crate) const ROWS: i64 = 30_000;

/// The password of all users.
pub(crate) const PASSWORD: &str = "pencil";

/// A test that takes longer hangs.
pub(crate) const HANG: Duration = Duration::from_secs(120);

/// The result, which must come, since nothing may hang.
pub(crate) async fn in_time<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(HANG, work).await.expect("nothing hangs")
}

/// The tables `numbers` and `secrets`, with `id` starting at 0, and `word`. Ann may read `numbers`, Bob both. Root is
/// an administrator.
pub(crate) struct Tables {
    pub(crate) directory: TempDir,
    pub(crate) locations: BTreeMap<String, TableLocation>,
}

impl Tables {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let mut tables = Self { directory, locations: BTreeMap::new() };
        for name in ["numbers", "secrets"] {
            let path = tables.write(name, |rows| rows);
            tables.locations.insert(name.to_owned(), path.into());
        }
        tables
    }

    /// Writes the rows to a file in another form, and returns its path.
    pub(crate) fn write(&self, name: &str, form: impl Fn(RecordBatch) -> RecordBatch) -> String {
        let ids = Int64Array::from_iter_values(0..ROWS);
        let words = StringArray::from_iter_values((0..ROWS).map(|id| format!("word {}", id % 7)));
        let columns = [("id", Arc::new(ids) as _), ("word", Arc::new(words) as _)];
        let batch = form(RecordBatch::try_from_iter(columns).unwrap());
        let path = self.directory.path().join(format!("{name}.parquet"));
        let options = WriterProperties::builder().set_max_row_group_row_count(Some(5_000));
        write_parquet(&path, &batch, options.build());
        path.display().to_string()
    }

    /// The text of a users file.
    pub(crate) fn users() -> String {
        let verifier = Verifier::of_password(PASSWORD).unwrap();
        let ann = entry("ann", &verifier, &["numbers".to_owned()]);
        let bob = entry("bob", &verifier, &[]);
        let root = entry("root", &verifier, &[]).replace("admin = false", "admin = true");
        [ann, bob, root].concat()
    }

    pub(crate) async fn service(&self, limits: &Limits) -> Arc<SqlService> {
        let manager = BufferManager::new(Options::with_memory_bytes(256 << 20)).unwrap();
        let users = Arc::new(Users::parse(&Self::users()).unwrap());
        let service = SqlService::new(&manager, users, limits).unwrap();
        service.open_tables(&self.locations).await.unwrap();
        Arc::new(service)
    }
}

//! The entry point: one manager for all queries that share.

use std::any::Any;
use std::ops::Range;
use std::sync::Arc;

use coscan_core::ChunkIndex;
use coscan_core::log::Header;
use coscan_storage::stores::Stores;
use coscan_storage::table::{FileOptions, FileToOpen, ParquetFile, ParquetTable, TableFile};
use tokio::io::AsyncWrite;
use tokio::runtime::Handle;

use crate::driver::Driver;
use crate::error::{JointTableError, OpenError, ScanError};
use crate::io::load_threads::IoRuntime;
use crate::joint::scan::{JointScan, JointScanRequest};
use crate::joint::table::JointTable;
use crate::lookup::first_rows::FirstRows;
use crate::machine::cores;
use crate::observe::metrics::ManagerReport;
use crate::observe::recorder;
use crate::observe::recording::Recording;
use crate::options::{Options, OptionsError};
use crate::scans::request::ScanRequest;
use crate::scans::scan::Scan;
use crate::scans::stream::ScanStream;
use crate::tables::footer_reader::FooterReader;
use crate::tables::table::SharedTable;

/// Reads, caches and decodes for all scans of all tables registered with it.
///
/// It is cheap to clone. Clones are the same manager.
///
/// # Example
/// `examples/embed.rs` of this crate reads a file with two scans at once.
#[derive(Clone, Debug)]
pub struct BufferManager {
    pub(crate) driver: Arc<Driver>,
}

impl BufferManager {
    /// A manager that reads on threads of its own, so that busy queries do not delay its loads.
    ///
    /// # Errors
    /// If the settings do not fit together, or a thread cannot be started.
    pub fn new(options: Options) -> Result<Self, OptionsError> {
        options.check()?;
        Ok(Self { driver: Driver::start(options, IoRuntime::on_own_threads()?, None) })
    }

    /// A manager that reads on a tokio runtime. It suits programs that have a runtime for input and output, beside that
    /// of their queries. The runtime has to outlive all scans.
    ///
    /// # Errors
    /// If the settings do not fit together.
    pub fn on_runtime(options: Options, runtime: &Handle) -> Result<Self, OptionsError> {
        options.check()?;
        Ok(Self { driver: Driver::start(options, IoRuntime::on(runtime), None) })
    }

    /// A manager that records its decisions. All commands to core and all its actions are written to `file`, in the
    /// format of [`coscan_core::log`]. Entries are kept in memory until they are written, on the tokio runtime of the
    /// caller.
    ///
    /// # Errors
    /// As [`Self::new`], or if there is no tokio runtime here.
    pub fn recorded(
        options: Options,
        file: impl AsyncWrite + Send + Unpin + 'static,
    ) -> Result<(Self, Recording), OptionsError> {
        options.check()?;
        let runtime = Handle::try_current().map_err(|_| OptionsError::NoRuntime)?;
        let header = Header::new(options.policy.name(), options.core_config(), cores());
        let (recorder, writer) = recorder::start(&runtime, &header, file);
        let driver = Driver::start(options, IoRuntime::on_own_threads()?, Some(recorder));
        let recording = Recording { driver: Arc::clone(&driver), writer };
        Ok((Self { driver }, recording))
    }

    /// The object stores of this manager. Each is made when first needed and then kept, so that there is one client for
    /// each store.
    #[must_use]
    pub fn stores(&self) -> &Stores {
        self.driver.stores()
    }

    /// Opens files, in the order given. A file version that is already open with the same options is shared, not read
    /// again; nor is a file read whose footer is given. A footer that several callers ask for is read once. Footers
    /// read before one fails are kept for the next attempt. They count against the memory budget as they are read.
    ///
    /// # Errors
    /// If a file cannot be read, even when tried again, or is not sound Parquet, or there is no memory for its footer.
    pub async fn open_files(
        &self,
        files: impl IntoIterator<Item = impl Into<FileToOpen>>,
        options: FileOptions,
    ) -> Result<Vec<Arc<ParquetFile>>, OpenError> {
        let files = files.into_iter().map(Into::into).collect();
        let reader = FooterReader::new(&self.driver);
        self.driver.open_files().open(files, options, &reader).await
    }

    /// Counts files that the program itself has opened against the memory budget, and shares them with later calls of
    /// [`Self::open_files`]. Files that are open already are left as they are.
    pub fn adopt_files(&self, files: &[Arc<ParquetFile>]) {
        for file in files {
            self.driver.open_files().adopt(self.driver.memory(), file);
        }
    }

    /// Whether a file version is open with these options, so that opening it again reads nothing.
    #[must_use]
    pub fn is_open(&self, file: &TableFile, options: FileOptions) -> bool {
        self.driver.open_files().is_open(file, options)
    }

    /// A value that a program keeps with the manager, one of each type, made when first asked for. `make` must not call
    /// this method, which would deadlock.
    pub fn extension<T: Any + Send + Sync>(&self, make: impl FnOnce() -> T) -> Arc<T> {
        self.driver.extensions().get(make)
    }

    /// Calls `give_back` every [`Options::idle_timeout`], when pages that were idle for as long are evicted, until it
    /// returns false. A program can then drop what it keeps with the manager. `give_back` must not keep the manager
    /// alive, nor take long.
    pub fn when_idle(&self, give_back: impl FnMut() -> bool + Send + 'static) {
        self.driver.extensions().add_idle_call(Box::new(give_back));
    }

    /// Registers a table. It shares the pages of its files with all tables that list them, and is scheduled together
    /// with tables of exactly the same files. Pages leave the pool when no table with their file is held any more.
    #[must_use]
    pub fn register(&self, table: Arc<ParquetTable>) -> SharedTable {
        SharedTable::register(&self.driver, None, table)
    }

    /// Registers a snapshot of the table of this name, for a table that changes. It is scheduled together with all
    /// others of that name that have the same columns. Scans continue with the snapshot that they began with. What two
    /// snapshots have in common is read once. See [`Self::register`].
    #[must_use]
    pub fn register_snapshot(&self, name: &str, table: Arc<ParquetTable>) -> SharedTable {
        SharedTable::register(&self.driver, Some(name), table)
    }

    /// Registers tables that are scanned together. `chunks[u][t]` are the rows of table `t` in joint chunk `u`, counted
    /// from the start of the table, if any. All rows of a range of keys are in one joint chunk: see [`find_rows`].
    ///
    /// # Errors
    /// If there are no tables, they have a file in common, or the ranges of a table do not ascend within it as `u`
    /// does, or overlap.
    ///
    /// [`find_rows`]: crate::find_rows
    pub fn register_joint(
        &self,
        tables: &[SharedTable],
        chunks: Vec<Vec<Range<u64>>>,
    ) -> Result<JointTable, JointTableError> {
        JointTable::register(&self.driver, tables, &chunks)
    }

    /// Registers the needs of a query in a joint table. Its workers then take joint chunks of it.
    ///
    /// # Errors
    /// If a column or joint chunk does not exist, there are no workers, the pool is too small for one joint chunk of these
    /// columns, or queries hold the memory that the pool would need for it.
    pub fn start_joint_scan(
        &self,
        table: &JointTable,
        request: JointScanRequest,
    ) -> Result<Arc<JointScan>, ScanError> {
        JointScan::start(&self.driver, table, request)
    }

    /// Reads some columns and rows of a table, in any order, and shares with all other scans.
    ///
    /// Columns are indexes into the fields of the table's schema, rows ascending ranges from the start of the table.
    ///
    /// # Errors
    /// If a column does not exist, rows do not ascend or overlap, the pool is too small for one chunk of these columns,
    /// or queries hold the memory that the pool would need for it.
    pub fn scan(
        &self,
        table: &SharedTable,
        columns: &[usize],
        rows: &[Range<u64>],
    ) -> Result<ScanStream, ScanError> {
        let request =
            ScanRequest { rows: rows.to_vec(), ..ScanRequest::of_columns(table, columns.to_vec()) };
        Ok(self.start_scan(table, request)?.worker(0))
    }

    /// Registers the needs of a query. Its workers then take chunks of it.
    ///
    /// # Errors
    /// As [`Self::scan`], or if there are no workers.
    pub fn start_scan(
        &self,
        table: &SharedTable,
        request: ScanRequest,
    ) -> Result<Arc<Scan>, ScanError> {
        Scan::start(&self.driver, table, request, None)
    }

    /// Registers a query that needs only these chunks of its request for now, in ascending order. [`Scan::extend`] adds
    /// others. See [`Self::start_scan`].
    ///
    /// # Errors
    /// As [`Self::start_scan`].
    pub fn start_scan_of(
        &self,
        table: &SharedTable,
        request: ScanRequest,
        chunks: &[ChunkIndex],
    ) -> Result<Arc<Scan>, ScanError> {
        Scan::start(&self.driver, table, request, Some(chunks))
    }

    /// Reads the first few rows of chunks. Only the first pages of each column are read, bypassing the pool, though
    /// pages in it are used. If that is not possible or costs as much as whole chunks, a scan gives the remaining rows.
    ///
    /// Until then rows come in the order of the table. The number of workers has no effect.
    ///
    /// # Errors
    /// If a column does not exist, or rows do not ascend or overlap.
    pub fn first_rows(
        &self,
        table: &SharedTable,
        request: ScanRequest,
    ) -> Result<FirstRows, ScanError> {
        FirstRows::start(&self.driver, table, request)
    }

    /// Whether a scan has waited for memory for more than a moment (10 ms). Queries then release the memory that they
    /// hold for rows that are not waited for.
    #[must_use]
    pub fn is_memory_short(&self) -> bool {
        self.driver.is_memory_short()
    }

    /// Evicts all pages and decoded columns that no running scan needs.
    pub fn evict_unneeded(&self) {
        self.driver.evict_unneeded();
    }

    /// Changes the most bytes of stored pages, while scans run.
    ///
    /// A smaller pool evicts at once, the most useful pages last. Pages in use or being read stay, and a running scan
    /// keeps space for its largest chunk. What still exceeds the limit is evicted as scans release pages and memory. A new scan
    /// whose chunk does not fit is refused. A larger pool takes what operators and decoded columns leave of the budget.
    ///
    /// # Errors
    /// If it is 0, or more than `memory_bytes` less `decode_bytes`, which is half of the budget by default.
    pub fn set_pool_bytes(&self, pool_bytes: u64) -> Result<(), OptionsError> {
        Options { pool_bytes, ..self.options().clone() }.check()?;
        self.driver.set_pool_ceiling_bytes(pool_bytes);
        Ok(())
    }

    /// The settings that it was made with.
    #[must_use]
    pub fn options(&self) -> &Options {
        self.driver.options()
    }

    /// Its current memory and activity.
    #[must_use]
    pub fn report(&self) -> ManagerReport {
        self.driver.report()
    }
}

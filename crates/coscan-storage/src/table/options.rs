//! How a file is cut into chunks and pages.

/// Which columns are stored together in a page [CS07 §6].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageLayout {
    /// A column group per top-level column: only the columns that a query needs are read (DSM).
    #[default]
    Column,
    /// All columns in one group: a page is a whole row group, read in one request (NSM, PAX).
    Row,
}

/// How to open a file. A file version opened twice under the same options is the same [`ParquetFile`](super::ParquetFile).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileOptions {
    /// The least number of rows of a chunk. Only the last chunk of a file, or one before a huge row group, may have
    /// fewer. Row groups with at least twice as many are split.
    pub chunk_rows: u64,
    /// Which columns are stored together.
    pub layout: PageLayout,
}

/// The options of all files of a table.
pub type TableOptions = FileOptions;

impl Default for FileOptions {
    fn default() -> Self {
        Self { chunk_rows: 131_072, layout: PageLayout::Column }
    }
}

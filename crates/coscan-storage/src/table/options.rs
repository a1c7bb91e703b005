//! How a file is cut into chunks and pages, and which types its columns are read as.

use arrow_schema::TimeUnit;

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
    /// The Arrow types of its columns.
    pub types: ColumnTypes,
}

/// Which Arrow types the columns of a file are read as, where Parquet leaves a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnTypes {
    /// Strings and binaries at the top level as views, which need no copy of the values to filter or take.
    pub views: bool,
    /// Binaries at the top level as strings: some writers do not say which binaries are texts.
    pub binary_as_string: bool,
    /// The unit of INT96 timestamps; without one nanoseconds, which end in the year 2262.
    pub int96_unit: Option<TimeUnit>,
}

impl ColumnTypes {
    /// Those of DataFusion's defaults.
    pub const USUAL: Self = Self { views: true, binary_as_string: false, int96_unit: None };
}

impl Default for ColumnTypes {
    fn default() -> Self {
        Self::USUAL
    }
}

impl Default for FileOptions {
    fn default() -> Self {
        Self { chunk_rows: 131_072, layout: PageLayout::Column, types: ColumnTypes::default() }
    }
}

//! Options of opening a file: chunk size, page layout, types of columns.

use arrow_schema::TimeUnit;

/// The columns that share a page [CS07 §6].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum PageLayout {
    /// One column group for each top-level column (DSM): a query reads only the columns that it needs.
    #[default]
    Column,
    /// All columns in one group (NSM, PAX): a page is a whole row group, read in one request.
    Row,
}

/// Options of opening a file. A file version opened twice under the same options has the same chunks and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FileOptions {
    /// The minimum number of rows of a chunk. Only the last chunk of a file, or one before a huge row group, may have
    /// fewer. Row groups with at least twice as many are split.
    pub chunk_rows: u64,
    /// The columns that share a page.
    pub layout: PageLayout,
    /// The Arrow types of its columns.
    pub types: ColumnTypes,
}

/// The Arrow types of columns where Parquet leaves a choice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ColumnTypes {
    /// Strings and binaries at the top level as views, which need no copy of the values to filter or take.
    pub views: bool,
    /// Binaries at the top level as strings: some writers do not mark text.
    pub binary_as_string: bool,
    /// The unit of INT96 timestamps; `None` for nanoseconds, which end in the year 2262.
    pub int96_unit: Option<TimeUnit>,
}

impl ColumnTypes {
    /// The defaults of DataFusion.
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

//! Cuts pages behind the values of the wanted rows.
//!
//! Source: Parquet format, "Data Pages" in `README.md` (levels before values) and `Encodings.md` (plain, dictionary).

use bytes::Bytes;
use parquet::basic::{Compression, Encoding, Type};
use parquet::column::page::Page;
use parquet::file::metadata::ColumnChunkMetaData;

use super::page_header::{Contents, PageHeader};
use super::{hybrid, start};

/// The start of a page.
#[derive(Clone, Copy)]
pub(super) struct PageStart<'a> {
    pub(super) header: PageHeader,
    /// The start of its body, as stored.
    pub(super) body: &'a [u8],
}

/// The result of cutting pages.
pub(super) enum Cut {
    Done(Vec<Page>),
    /// More bytes of the dictionary are needed.
    MoreDictionary,
    /// More bytes of the data page are needed.
    MoreData,
    /// They cannot be cut, or are damaged.
    Unfit,
}

/// The properties of a column that cutting its pages depends on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cutter {
    codec: Compression,
    width: Width,
    max_level: u32,
    /// The number of wanted rows, and so of levels.
    rows: u64,
}

/// The width of a value in plain encoding.
#[derive(Clone, Copy, Debug)]
enum Width {
    Bit,
    Bytes(usize),
    /// Each value follows its length in 4 bytes.
    Variable,
}

/// Numbers of `Encoding` in `parquet.thrift`.
const PLAIN: u64 = 0;
const PLAIN_DICTIONARY: u64 = 2;
const RLE: u64 = 3;
const RLE_DICTIONARY: u64 = 8;

impl Cutter {
    /// For the first rows of a column chunk; `None` if its pages cannot be cut.
    pub(super) fn new(column: &ColumnChunkMetaData, rows: u64) -> Option<Self> {
        let descriptor = column.column_descr();
        let width = match column.column_type() {
            Type::BOOLEAN => Width::Bit,
            Type::INT32 | Type::FLOAT => Width::Bytes(4),
            Type::INT64 | Type::DOUBLE => Width::Bytes(8),
            Type::INT96 => Width::Bytes(12),
            Type::BYTE_ARRAY => Width::Variable,
            Type::FIXED_LEN_BYTE_ARRAY => {
                Width::Bytes(usize::try_from(descriptor.type_length()).ok()?)
            }
        };
        let codec = column.compression();
        let max_level = u32::try_from(descriptor.max_def_level()).ok()?;
        let can_cut = descriptor.max_rep_level() == 0 && start::is_known(codec);
        can_cut.then_some(Self { codec, width, max_level, rows })
    }

    /// Cuts a data page, and its dictionary if it has one.
    pub(super) fn cut(&self, dictionary: Option<PageStart<'_>>, data: PageStart<'_>) -> Cut {
        let has_checksum = |page: PageStart<'_>| page.header.has_checksum;
        if has_checksum(data) || dictionary.is_some_and(has_checksum) {
            // A checksum covers the whole page.
            return Cut::Unfit;
        }
        let more = |page: PageStart<'_>, more| match page.is_whole() {
            true => Cut::Unfit,
            false => more,
        };
        let data_page = DataPage::of(data.header.contents, self.max_level);
        let Some(data_page) = data_page.filter(|page| page.values >= self.rows) else {
            return Cut::Unfit;
        };
        let Some(CutData { page, entries }) =
            self.as_far_as_needed(data, |body_bytes| self.cut_data(data_page, data, body_bytes))
        else {
            return more(data, Cut::MoreData);
        };
        let (Some(entries), Some(dictionary)) = (entries, dictionary) else {
            // Indexes need a dictionary.
            return if entries.is_some() { Cut::Unfit } else { Cut::Done(vec![page]) };
        };
        let cut = |body_bytes| self.cut_dictionary(dictionary, entries, body_bytes);
        match self.as_far_as_needed(dictionary, cut) {
            Some(dictionary) => Cut::Done(vec![dictionary, page]),
            None => more(dictionary, Cut::MoreDictionary),
        }
    }

    /// Tries with more and more bytes of a page decompressed: most often few are enough.
    fn as_far_as_needed<T>(
        &self,
        page: PageStart<'_>,
        cut: impl Fn(usize) -> Option<T>,
    ) -> Option<T> {
        let all_bytes = usize::try_from(page.header.uncompressed_bytes).ok()?;
        let mut bytes = start::first_bytes(self.codec);
        while bytes < all_bytes {
            if let Some(cut) = cut(bytes) {
                return Some(cut);
            }
            bytes = bytes.saturating_mul(8);
        }
        cut(all_bytes)
    }

    /// A page from the first `body_bytes` bytes of its decompressed body. `None` if more are needed, or they are
    /// damaged.
    fn cut_data(
        &self,
        data_page: DataPage,
        data: PageStart<'_>,
        body_bytes: usize,
    ) -> Option<CutData> {
        let (body, levels) = match data_page.levels {
            Levels::WithValues => {
                let body = start::decompress(self.codec, data.body, body_bytes);
                let levels = match self.max_level {
                    0 => 0..0,
                    _ => 4..4 + length_at(&body, 0)?,
                };
                (body, levels)
            }
            Levels::Before { bytes, is_compressed } => {
                let bytes = usize::try_from(bytes).ok()?;
                let (levels, values) = data.body.split_at_checked(bytes)?;
                let codec = if is_compressed { self.codec } else { Compression::UNCOMPRESSED };
                let values_max = body_bytes.checked_sub(bytes)?;
                let values = start::decompress(codec, values, values_max);
                ([levels, &values].concat().into(), 0..bytes)
            }
        };
        let mut held = self.rows;
        if self.max_level > 0 {
            held = 0;
            let width = (u32::BITS - self.max_level.leading_zeros()) as usize;
            hybrid::read(body.get(levels.clone())?, width, self.rows, |level, times| {
                held += if level == self.max_level { times } else { 0 };
            })?;
        }
        let values = body.get(levels.end..)?;
        let (values_bytes, entries) = match data_page.encoding {
            PLAIN => (self.plain_bytes(values, held)?, None),
            _ => {
                let (&width, indexes) = values.split_first()?;
                let mut entries = 0;
                let tell = |index: u32, _| entries = entries.max(u64::from(index) + 1);
                let indexes_bytes = hybrid::read(indexes, usize::from(width), held, tell)?;
                (1 + indexes_bytes, Some(entries))
            }
        };
        let buf = Bytes::copy_from_slice(body.get(..levels.end + values_bytes)?);
        let (num_values, num_nulls) =
            (u32::try_from(self.rows).ok()?, u32::try_from(self.rows - held).ok()?);
        let encoding = encoding(data_page.encoding);
        let page = match data_page.levels {
            Levels::WithValues => Page::DataPage {
                buf,
                num_values,
                encoding,
                def_level_encoding: Encoding::RLE,
                rep_level_encoding: Encoding::RLE,
                statistics: None,
            },
            Levels::Before { .. } => Page::DataPageV2 {
                buf,
                num_values,
                encoding,
                num_nulls,
                num_rows: num_values,
                def_levels_byte_len: u32::try_from(levels.end).ok()?,
                rep_levels_byte_len: 0,
                is_compressed: false,
                statistics: None,
            },
        };
        Some(CutData { page, entries })
    }

    /// The first `entries` entries of a dictionary, likewise.
    fn cut_dictionary(
        &self,
        dictionary: PageStart<'_>,
        entries: u64,
        body_bytes: usize,
    ) -> Option<Page> {
        let Contents::Dictionary { values, encoding } = dictionary.header.contents else {
            return None;
        };
        if entries > values || ![PLAIN, PLAIN_DICTIONARY].contains(&encoding) {
            return None;
        }
        let body = start::decompress(self.codec, dictionary.body, body_bytes);
        let entries_bytes = self.plain_bytes(&body, entries)?;
        Some(Page::DictionaryPage {
            buf: Bytes::copy_from_slice(body.get(..entries_bytes)?),
            num_values: u32::try_from(entries).ok()?,
            encoding: self::encoding(encoding),
            is_sorted: false,
        })
    }

    /// The size of the first `count` values in plain encoding, if `values` is that long.
    fn plain_bytes(&self, values: &[u8], count: u64) -> Option<usize> {
        let count = usize::try_from(count).ok()?;
        let bytes = match self.width {
            Width::Bit => count.div_ceil(8),
            Width::Bytes(bytes) => count.checked_mul(bytes)?,
            Width::Variable => (0..count)
                .try_fold(0usize, |end, _| end.checked_add(4 + length_at(values, end)?))?,
        };
        (bytes <= values.len()).then_some(bytes)
    }
}

/// The length that precedes a value or levels, in 4 bytes at an offset.
fn length_at(bytes: &[u8], offset: usize) -> Option<usize> {
    let length = bytes.get(offset..)?.first_chunk()?;
    usize::try_from(u32::from_le_bytes(*length)).ok()
}

fn encoding(number: u64) -> Encoding {
    match number {
        PLAIN => Encoding::PLAIN,
        PLAIN_DICTIONARY => Encoding::PLAIN_DICTIONARY,
        _ => Encoding::RLE_DICTIONARY,
    }
}

impl PageStart<'_> {
    fn is_whole(self) -> bool {
        self.body.len() as u64 == self.header.body_bytes
    }
}

/// A data page that can be cut.
#[derive(Clone, Copy)]
struct DataPage {
    /// The number of values, nulls included.
    values: u64,
    encoding: u64,
    levels: Levels,
}

/// The place of definition levels.
#[derive(Clone, Copy)]
enum Levels {
    /// In version 1: with their length before the values, compressed with them.
    WithValues,
    /// In version 2: uncompressed before the values.
    Before { bytes: u64, is_compressed: bool },
}

impl DataPage {
    fn of(contents: Contents, max_level: u32) -> Option<Self> {
        let (values, encoding, levels) = match contents {
            // Writers give any encoding for levels of required columns, which have none.
            Contents::Data { values, encoding, definition_levels }
                if max_level == 0 || definition_levels == RLE =>
            {
                (values, encoding, Levels::WithValues)
            }
            Contents::DataV2 { values, encoding, definition_bytes, is_compressed, .. } => {
                let levels = Levels::Before { bytes: definition_bytes, is_compressed };
                (values, encoding, levels)
            }
            _ => return None,
        };
        let can_cut = [PLAIN, PLAIN_DICTIONARY, RLE_DICTIONARY].contains(&encoding);
        can_cut.then_some(Self { values, encoding, levels })
    }
}

/// A data page that was cut.
struct CutData {
    page: Page,
    /// The number of entries of the dictionary that it needs, if it has one.
    entries: Option<u64>,
}

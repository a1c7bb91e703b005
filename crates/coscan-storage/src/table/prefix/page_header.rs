//! Headers of pages, which give the length and the content of a page.
//!
//! Source: Parquet format, `PageHeader` in `parquet.thrift` and "Data Pages".

use crate::table::thrift::{I32, Reader, STRUCT};

/// The header of a page, with the fields that are used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub(super) header_bytes: u64,
    /// Bytes of the body, which follows the header.
    pub(super) body_bytes: u64,
    pub(super) contents: Contents,
}

/// The content of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// `DataPageHeader`, version 1; nulls count as values.
    Data { values: u64 },
    /// `DataPageHeaderV2`.
    DataV2 { rows: u64 },
    /// A dictionary, an index page, or a type of page that is not known.
    NoRows,
}

/// The page header (`PageHeader`) that begins here; `None` if it is cut off or not Thrift.
pub(super) fn page_header(bytes: &[u8]) -> Option<PageHeader> {
    let mut reader = Reader::new(bytes);
    let mut body_bytes = None;
    let mut contents = Contents::NoRows;
    let mut id = 0;
    while let Some((next, kind)) = reader.field(id)? {
        match (next, kind) {
            (3, I32) => body_bytes = Some(reader.count()?),
            (5, STRUCT) => contents = Contents::Data { values: reader.count_of(1)?? },
            (8, STRUCT) => contents = Contents::DataV2 { rows: reader.count_of(3)?? },
            _ => reader.skip(kind)?,
        }
        id = next;
    }
    let header_bytes = (bytes.len() - reader.rest().len()) as u64;
    Some(PageHeader { header_bytes, body_bytes: body_bytes?, contents })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_how_far_a_page_reaches_and_how_many_rows_it_holds() {
        // 1: type, 2: 100 bytes, 3: 40 compressed, 8: {1: 7 values, 2: 2 nulls, 3: 5 rows, 4: encoding 8, 5: 3 bytes
        // of definition levels, 6: none of repetition levels, 7: false}.
        let second = [
            0x15, 6, 0x15, 200, 1, 0x15, 80, 0x5c, 0x15, 14, 0x15, 4, 0x15, 10, 0x15, 16, 0x15, 6,
            0x15, 0, 0x12, 0, 0,
        ];
        let contents = Contents::DataV2 { rows: 5 };
        let header = PageHeader { header_bytes: 23, body_bytes: 40, contents };
        assert_eq!(page_header(&second), Some(header));
        // 4: a checksum, 5: {1: 7 values, 2: encoding 0, 3: levels in encoding 3}, and what follows.
        let first = [
            0x15, 0, 0x15, 200, 1, 0x15, 80, 0x15, 9, 0x1c, 0x15, 14, 0x15, 0, 0x15, 6, 0, 0, 1, 2,
        ];
        let contents = Contents::Data { values: 7 };
        let header = PageHeader { header_bytes: 18, contents, ..header };
        assert_eq!(page_header(&first), Some(header));
        // 7: {1: 7 values, 2: encoding 2}, a dictionary.
        let dictionary = [0x15, 4, 0x15, 200, 1, 0x15, 80, 0x4c, 0x15, 14, 0x15, 4, 0, 0];
        let header = PageHeader { header_bytes: 14, contents: Contents::NoRows, ..header };
        assert_eq!(page_header(&dictionary), Some(header));
        for end in 0..second.len() {
            assert_eq!(page_header(&second[..end]), None, "cut off after {end}");
        }
        assert_eq!(page_header(&[0x35, 1, 0]), None, "a negative size");
    }
}

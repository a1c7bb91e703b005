//! Headers of pages, which say how far a page reaches and what it holds.
//!
//! Source: Parquet format, `PageHeader` in `parquet.thrift` and "Data Pages".

use crate::table::thrift::{I32, Reader, STRUCT};

/// The header of a page: the fields that are of use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub(super) header_bytes: u64,
    /// Bytes of the body, which follows the header.
    pub(super) body_bytes: u64,
    /// Bytes of the body before it was compressed.
    pub(super) uncompressed_bytes: u64,
    pub(super) has_checksum: bool,
    pub(super) contents: Contents,
}

/// The content of a page. Encodings are the numbers of `Encoding` in `parquet.thrift`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// `DataPageHeader`, version 1; nulls count as values.
    Data {
        values: u64,
        encoding: u64,
        definition_levels: u64,
    },
    /// `DataPageHeaderV2`.
    DataV2 {
        values: u64,
        rows: u64,
        encoding: u64,
        definition_bytes: u64,
        is_compressed: bool,
    },
    Dictionary {
        values: u64,
        encoding: u64,
    },
    /// An index page, or a type of page that is not known.
    Other,
}

/// The page header (`PageHeader`) that begins here. `None` if it is cut off or not Thrift.
pub(super) fn page_header(bytes: &[u8]) -> Option<PageHeader> {
    let mut reader = Reader::new(bytes);
    let (mut body_bytes, mut uncompressed_bytes, mut has_checksum) = (None, None, false);
    let mut contents = Contents::Other;
    let mut id = 0;
    while let Some((next, kind)) = reader.field(id)? {
        match (next, kind) {
            (2, I32) => uncompressed_bytes = Some(reader.count()?),
            (3, I32) => body_bytes = Some(reader.count()?),
            (4, I32) => {
                has_checksum = true;
                reader.skip(kind)?;
            }
            (5, STRUCT) => {
                let [values, encoding, definition_levels] = reader.counts([1, 2, 3])?;
                let (values, encoding) = (values?, encoding?);
                let definition_levels = definition_levels?;
                contents = Contents::Data { values, encoding, definition_levels };
            }
            (7, STRUCT) => {
                let [values, encoding] = reader.counts([1, 2])?;
                contents = Contents::Dictionary { values: values?, encoding: encoding? };
            }
            (8, STRUCT) => {
                let [values, rows, encoding, definition_bytes, is_compressed] =
                    reader.counts([1, 3, 4, 5, 7])?;
                contents = Contents::DataV2 {
                    values: values?,
                    rows: rows?,
                    encoding: encoding?,
                    definition_bytes: definition_bytes?,
                    is_compressed: is_compressed != Some(0),
                };
            }
            _ => reader.skip(kind)?,
        }
        id = next;
    }
    let header_bytes = (bytes.len() - reader.rest().len()) as u64;
    let (body_bytes, uncompressed_bytes) = (body_bytes?, uncompressed_bytes?);
    Some(PageHeader { header_bytes, body_bytes, uncompressed_bytes, has_checksum, contents })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_how_far_a_page_reaches_and_what_it_holds() {
        // 1: type, 2: 100 bytes, 3: 40 compressed, 8: {1: 7 values, 2: 2 nulls, 3: 5 rows, 4: encoding 8, 5: 3 bytes
        // of definition levels, 6: none of repetition levels, 7: false}.
        let second = [
            0x15, 6, 0x15, 200, 1, 0x15, 80, 0x5c, 0x15, 14, 0x15, 4, 0x15, 10, 0x15, 16, 0x15, 6,
            0x15, 0, 0x12, 0, 0,
        ];
        let contents = Contents::DataV2 {
            values: 7,
            rows: 5,
            encoding: 8,
            definition_bytes: 3,
            is_compressed: false,
        };
        let header = PageHeader {
            header_bytes: 23,
            body_bytes: 40,
            uncompressed_bytes: 100,
            has_checksum: false,
            contents,
        };
        assert_eq!(page_header(&second), Some(header));
        // 4: a checksum, 5: {1: 7 values, 2: encoding 0, 3: levels in encoding 3}, and what follows.
        let first = [
            0x15, 0, 0x15, 200, 1, 0x15, 80, 0x15, 9, 0x1c, 0x15, 14, 0x15, 0, 0x15, 6, 0, 0, 1, 2,
        ];
        let contents = Contents::Data { values: 7, encoding: 0, definition_levels: 3 };
        let header = PageHeader { header_bytes: 18, has_checksum: true, contents, ..header };
        assert_eq!(page_header(&first), Some(header));
        // 7: {1: 7 values, 2: encoding 2}, a dictionary.
        let dictionary = [0x15, 4, 0x15, 200, 1, 0x15, 80, 0x4c, 0x15, 14, 0x15, 4, 0, 0];
        let contents = Contents::Dictionary { values: 7, encoding: 2 };
        let header = PageHeader { header_bytes: 14, has_checksum: false, contents, ..header };
        assert_eq!(page_header(&dictionary), Some(header));
        for end in 0..second.len() {
            assert_eq!(page_header(&second[..end]), None, "cut off after {end}");
        }
        assert_eq!(page_header(&[0x35, 1, 0]), None, "a negative size");
    }
}

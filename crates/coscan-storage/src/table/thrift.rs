//! Just enough of Thrift's compact protocol to see which fields a footer has, which the Parquet library passes over if it
//! does not know them, and how far a page reaches, which it does not tell.

/// Whether a struct, which begins here, has a field. `None` if it cannot be understood.
pub(super) fn has_field(bytes: &[u8], wanted: i16) -> Option<bool> {
    let mut reader = Reader { bytes, depth: 0 };
    let mut id = 0;
    while let Some((next, kind)) = reader.field(id)? {
        if next == wanted {
            return Some(true);
        }
        reader.skip(kind)?;
        id = next;
    }
    Some(false)
}

/// The bytes of a Bloom filter, its header included, which begins here. `None` if that cannot be understood.
pub(super) fn bloom_filter_bytes(bytes: &[u8]) -> Option<u64> {
    let mut reader = Reader { bytes, depth: 0 };
    let (mut id, mut bits_bytes) = (0, None);
    while let Some((next, kind)) = reader.field(id)? {
        match next {
            BITS_BYTES => bits_bytes = Some(reader.number()? >> 1),
            _ => reader.skip(kind)?,
        }
        id = next;
    }
    let header_bytes = (bytes.len() - reader.bytes.len()) as u64;
    bits_bytes?.checked_add(header_bytes)
}

/// The field of the header of a Bloom filter that says how many bytes follow.
const BITS_BYTES: i16 = 1;

/// The header of a page, as far as it is of use here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub(super) header_bytes: u64,
    /// What follows the header, and as much before it was compressed.
    pub(super) body_bytes: u64,
    pub(super) uncompressed_bytes: u64,
    pub(super) has_checksum: bool,
    pub(super) contents: Contents,
}

/// What a page holds. Encodings are the numbers that the format has for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contents {
    /// Version 1; nulls are counted as values.
    Data {
        values: u64,
        encoding: u64,
        definition_levels: u64,
    },
    /// Version 2.
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
    /// An index, or what nobody knows yet.
    Other,
}

/// The header of a page, which begins here. `None` if it cannot be understood or is not all there.
pub(super) fn page_header(bytes: &[u8]) -> Option<PageHeader> {
    let mut reader = Reader { bytes, depth: 0 };
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
    let header_bytes = (bytes.len() - reader.bytes.len()) as u64;
    let (body_bytes, uncompressed_bytes) = (body_bytes?, uncompressed_bytes?);
    Some(PageHeader { header_bytes, body_bytes, uncompressed_bytes, has_checksum, contents })
}

/// The types of fields that matter.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const I32: u8 = 5;
const STRUCT: u8 = 12;

/// Structs within structs, at most: footers have a handful.
const DEPTH_MAX: usize = 64;

struct Reader<'a> {
    bytes: &'a [u8],
    depth: usize,
}

impl Reader<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn take(&mut self, count: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn integer(&mut self) -> Option<i64> {
        let zigzag = self.number()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    fn count(&mut self) -> Option<u64> {
        u64::try_from(self.integer()?).ok()
    }

    /// Fields of the struct that begins here: 32-bit integers, not negative, and truth values as 0 and 1.
    fn counts<const N: usize>(&mut self, wanted: [i16; N]) -> Option<[Option<u64>; N]> {
        let mut counts = [None; N];
        let mut id = 0;
        while let Some((next, kind)) = self.field(id)? {
            match (wanted.iter().position(|&wanted| wanted == next), kind) {
                (Some(position), I32) => counts[position] = Some(self.count()?),
                (Some(position), TRUE | FALSE) => counts[position] = Some((kind == TRUE).into()),
                _ => self.skip(kind)?,
            }
            id = next;
        }
        Some(counts)
    }

    /// The number and type of the next field, after that with the number `last`; none at the end of the struct.
    fn field(&mut self, last: i16) -> Option<Option<(i16, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let id = match head >> 4 {
            0 => i16::try_from(self.integer()?).ok()?,
            step => last.checked_add(i16::from(step))?,
        };
        Some(Some((id, head & 0x0f)))
    }

    fn skip(&mut self, kind: u8) -> Option<()> {
        match kind {
            // Of a field, true and false have no bytes.
            1 | 2 => Some(()),
            3 => self.take(1),
            4..=6 => self.number().map(drop),
            7 => self.take(8),
            8 => {
                let count = self.number()?;
                self.take(count)
            }
            9 | 10 => self.skip_list(),
            11 => self.skip_map(),
            STRUCT => self.skip_struct(),
            _ => None,
        }
    }

    fn skip_struct(&mut self) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        let mut id = 0;
        while let Some((next, kind)) = self.field(id)? {
            self.skip(kind)?;
            id = next;
        }
        self.depth -= 1;
        Some(())
    }

    fn skip_list(&mut self) -> Option<()> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.number()?,
            count => u64::from(count),
        };
        (0..count).try_for_each(|_| self.skip_element(head & 0x0f))
    }

    fn skip_map(&mut self) -> Option<()> {
        let count = self.number()?;
        if count == 0 {
            return Some(());
        }
        let kinds = self.byte()?;
        (0..count).try_for_each(|_| {
            self.skip_element(kinds >> 4)?;
            self.skip_element(kinds & 0x0f)
        })
    }

    /// In lists, true and false have a byte.
    fn skip_element(&mut self, kind: u8) -> Option<()> {
        if matches!(kind, 1 | 2) { self.take(1) } else { self.skip(kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_kinds_are_passed_over() {
        // 1: true, 2: i32 -1, 3: "ab", 4: [true, false], 5: {1: i64}, 6: {3: 4}, 20: double, 21: byte.
        let bytes = [
            0x11, 0x15, 0x01, 0x18, 2, b'a', b'b', 0x19, 0x21, 1, 2, 0x1c, 0x16, 9, 0, 0x1b, 1,
            0x55, 6, 8, 0x07, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0x13, 7, 0,
        ];
        for id in [1, 2, 3, 4, 5, 6, 20, 21] {
            assert_eq!(has_field(&bytes, id), Some(true), "{id}");
        }
        for id in [7, 19, 22] {
            assert_eq!(has_field(&bytes, id), Some(false), "{id}");
        }
        for end in 0..bytes.len() {
            assert_eq!(has_field(&bytes[..end], 22), None, "cut off after {end}");
        }
        assert_eq!(has_field(&[0x1c; 1000], 2), None, "too deep");
    }

    #[test]
    fn headers_of_pages_say_how_far_they_reach_and_what_they_hold() {
        // 1: type, 2: 100 bytes, 3: 40 compressed, 8: {1: 7 values, 2: 2 nulls, 3: 5 rows, 4: encoding 8, 5: 3 bytes of
        // definition levels, 6: none of repetition levels, 7: false}.
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

    #[test]
    fn the_header_of_a_bloom_filter_says_how_long_it_is() {
        // 32 bytes follow; BLOCK, XXHASH, UNCOMPRESSED.
        let header =
            [0x15, 64, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0, 0xff, 0xff];
        assert_eq!(bloom_filter_bytes(&header), Some(15 + 32));
        (0..15).for_each(|end| assert_eq!(bloom_filter_bytes(&header[..end]), None, "{end}"));
    }
}

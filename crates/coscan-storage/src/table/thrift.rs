//! Just enough of Thrift's compact protocol to see which fields a footer has. The Parquet library passes over those that it
//! does not know.

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

    /// The number and type of the next field, after that with the number `last`; none at the end of the struct.
    fn field(&mut self, last: i16) -> Option<Option<(i16, u8)>> {
        let head = self.byte()?;
        if head == 0 {
            return Some(None);
        }
        let id = match head >> 4 {
            0 => {
                let zigzag = self.number()?;
                i16::try_from((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed()).ok()?
            }
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
            12 => self.skip_struct(),
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
    fn the_header_of_a_bloom_filter_says_how_long_it_is() {
        // 32 bytes follow; BLOCK, XXHASH, UNCOMPRESSED.
        let header =
            [0x15, 64, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0x1c, 0x1c, 0, 0, 0, 0xff, 0xff];
        assert_eq!(bloom_filter_bytes(&header), Some(15 + 32));
        (0..15).for_each(|end| assert_eq!(bloom_filter_bytes(&header[..end]), None, "{end}"));
    }

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
}

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

/// What the header of a page says of its size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PageHeader {
    pub(super) header_bytes: u64,
    /// What follows the header.
    pub(super) body_bytes: u64,
    /// Values and nulls, if it is a data page.
    pub(super) values: Option<u64>,
    /// Rows, if it is a data page that says so.
    pub(super) rows: Option<u64>,
}

/// The header of a page, which begins here. `None` if it cannot be understood or is not all there.
pub(super) fn page_header(bytes: &[u8]) -> Option<PageHeader> {
    let mut reader = Reader { bytes, depth: 0 };
    let (mut body_bytes, mut values, mut rows) = (None, None, None);
    let mut id = 0;
    while let Some((next, kind)) = reader.field(id)? {
        match (next, kind) {
            (3, I32) => body_bytes = Some(u64::try_from(reader.integer()?).ok()?),
            (5, STRUCT) => [values] = reader.counts([1])?,
            (8, STRUCT) => [values, rows] = reader.counts([1, 3])?,
            _ => reader.skip(kind)?,
        }
        id = next;
    }
    let header_bytes = (bytes.len() - reader.bytes.len()) as u64;
    Some(PageHeader { header_bytes, body_bytes: body_bytes?, values, rows })
}

/// The types of fields that matter.
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

    /// Fields of the struct that begins here: 32-bit integers, not negative.
    fn counts<const N: usize>(&mut self, wanted: [i16; N]) -> Option<[Option<u64>; N]> {
        let mut counts = [None; N];
        let mut id = 0;
        while let Some((next, kind)) = self.field(id)? {
            match wanted.iter().position(|&wanted| wanted == next && kind == I32) {
                Some(position) => counts[position] = Some(u64::try_from(self.integer()?).ok()?),
                None => self.skip(kind)?,
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
    fn headers_of_pages_say_how_far_they_reach() {
        // 1: type, 2: 100 bytes, 3: 40 compressed, 8: {1: 7 values, 2: no nulls, 3: 5 rows, 4: encoding}.
        let second =
            [0x15, 6, 0x15, 200, 1, 0x15, 80, 0x5c, 0x15, 14, 0x15, 0, 0x15, 10, 0x15, 0, 0, 0];
        let header =
            PageHeader { header_bytes: 18, body_bytes: 40, values: Some(7), rows: Some(5) };
        assert_eq!(page_header(&second), Some(header));
        // 5: {1: 7 values, 2: encoding}, and what follows.
        let first = [0x15, 0, 0x15, 200, 1, 0x15, 80, 0x2c, 0x15, 14, 0x15, 0, 0, 0, 1, 2, 3];
        let header = PageHeader { header_bytes: 14, rows: None, ..header };
        assert_eq!(page_header(&first), Some(header));
        // 7: {1: 7 values}, a dictionary.
        let dictionary = [0x15, 4, 0x15, 200, 1, 0x15, 80, 0x4c, 0x15, 14, 0, 0];
        let header = PageHeader { header_bytes: 12, values: None, ..header };
        assert_eq!(page_header(&dictionary), Some(header));
        for end in 0..second.len() {
            assert_eq!(page_header(&second[..end]), None, "cut off after {end}");
        }
        assert_eq!(page_header(&[0x35, 1, 0]), None, "a negative size");
    }
}

//! Just enough of Thrift's compact protocol for what the Parquet library does not return: fields of a footer that it
//! skips, and the lengths of page headers and Bloom filters.
//!
//! Source: Apache Thrift, `doc/specs/thrift-compact-protocol.md`. Which fields a struct has is in `parquet.thrift` of
//! the Parquet format.

/// Whether a whole struct begins here.
pub(super) fn is_struct(bytes: &[u8]) -> bool {
    Reader::new(bytes).skip(STRUCT).is_some()
}

/// The types of fields that matter.
const TRUE: u8 = 1;
const FALSE: u8 = 2;
pub(super) const I32: u8 = 5;
pub(super) const LIST: u8 = 9;
pub(super) const STRUCT: u8 = 12;

/// The greatest nesting of structs, lists and maps; footers have a handful of levels.
const DEPTH_MAX: usize = 64;

/// Reads structs from their first byte on. `None` stands for bytes that are cut off or not Thrift.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    /// The nesting of the structs that are being skipped.
    depth: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, depth: 0 }
    }

    /// The bytes that are not read yet.
    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.bytes.split_first()?;
        self.bytes = rest;
        Some(first)
    }

    fn take(&mut self, count: u64) -> Option<()> {
        self.bytes = self.bytes.get(usize::try_from(count).ok()?..)?;
        Some(())
    }

    /// Reads an unsigned integer, seven bits per byte (LEB128).
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

    /// Reads a signed integer of any width, in zigzag form.
    fn integer(&mut self) -> Option<i64> {
        let zigzag = self.number()?;
        Some((zigzag >> 1).cast_signed() ^ -(zigzag & 1).cast_signed())
    }

    /// Reads an integer that is not negative.
    pub(super) fn count(&mut self) -> Option<u64> {
        u64::try_from(self.integer()?).ok()
    }

    /// Reads a field of the struct that begins here: a 32-bit integer that is not negative; `Some(None)` if it is
    /// missing.
    pub(super) fn count_of(&mut self, wanted: i16) -> Option<Option<u64>> {
        let (mut count, mut id) = (None, 0);
        while let Some((next, kind)) = self.field(id)? {
            if next == wanted && kind == I32 {
                count = Some(self.count()?);
            } else {
                self.skip(kind)?;
            }
            id = next;
        }
        Some(count)
    }

    /// Reads identifier and type of the next field, after the field `last`; `Some(None)` at the end of the struct.
    pub(super) fn field(&mut self, last: i16) -> Option<Option<(i16, u8)>> {
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

    /// Skips the value of a field.
    pub(super) fn skip(&mut self, kind: u8) -> Option<()> {
        match kind {
            // The type of a Boolean field is its value.
            TRUE | FALSE => Some(()),
            3 => self.take(1),
            4..=6 => self.number().map(drop),
            7 => self.take(8),
            8 => {
                let count = self.number()?;
                self.take(count)
            }
            LIST | 10 => self.nested(Self::skip_list),
            11 => self.nested(Self::skip_map),
            STRUCT => self.nested(Self::skip_struct),
            _ => None,
        }
    }

    /// Skips a value that holds others, unless they are nested too deep.
    fn nested(&mut self, skip: fn(&mut Self) -> Option<()>) -> Option<()> {
        self.depth += 1;
        if self.depth > DEPTH_MAX {
            return None;
        }
        skip(self)?;
        self.depth -= 1;
        Some(())
    }

    fn skip_struct(&mut self) -> Option<()> {
        let mut id = 0;
        while let Some((next, kind)) = self.field(id)? {
            self.skip(kind)?;
            id = next;
        }
        Some(())
    }

    /// Reads the type of the elements of the list that begins here, and their number.
    pub(super) fn list(&mut self) -> Option<(u8, u64)> {
        let head = self.byte()?;
        let count = match head >> 4 {
            15 => self.number()?,
            count => u64::from(count),
        };
        Some((head & 0x0f, count))
    }

    fn skip_list(&mut self) -> Option<()> {
        let (kind, count) = self.list()?;
        (0..count).try_for_each(|_| self.skip_element(kind))
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

    /// Skips an element of a list or map. Unlike in fields, Booleans take a byte there.
    fn skip_element(&mut self, kind: u8) -> Option<()> {
        if matches!(kind, TRUE | FALSE) { self.take(1) } else { self.skip(kind) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_of_all_types_are_skipped() {
        // 1: true, 2: i32 -1, 3: "ab", 4: [true, false], 5: {1: i64}, 6: {3: 4}, 20: double, 21: byte.
        let bytes = [
            0x11, 0x15, 0x01, 0x18, 2, b'a', b'b', 0x19, 0x21, 1, 2, 0x1c, 0x16, 9, 0, 0x1b, 1,
            0x55, 6, 8, 0x07, 40, 0, 0, 0, 0, 0, 0, 0, 0, 0x13, 7, 0,
        ];
        assert!(is_struct(&bytes));
        for end in 0..bytes.len() {
            assert!(!is_struct(&bytes[..end]), "cut off after {end}");
        }
        for kind in [0x1c, 0x19, 0x1b] {
            assert!(!is_struct(&vec![kind; 1 << 20]), "too deep: {kind:x}");
        }
    }
}

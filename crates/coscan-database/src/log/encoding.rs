//! Numbers and bytes in records.

/// How the log writes and reads the value of a cell.
#[derive(Debug)]
pub struct ValueFormat<V> {
    /// Appends a value.
    pub encode: fn(&V, &mut Vec<u8>),
    /// Reads a value that was written by `encode`; `None` if there is none.
    pub decode: fn(&mut Reader<'_>) -> Option<V>,
}

impl<V> Clone for ValueFormat<V> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<V> Copy for ValueFormat<V> {}

/// Appends a number: seven bits a byte, the lowest first; the highest bit of a byte says that another one follows.
pub fn put_number(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7F) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

/// Appends bytes after their number.
pub fn put_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    put_number(out, bytes.len() as u64);
    out.extend_from_slice(bytes);
}

/// Reads what was appended to a record. Nothing is trusted: it ends where the record ends.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    left: &'a [u8],
}

impl<'a> Reader<'a> {
    /// Reads these bytes.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { left: bytes }
    }

    /// Whether all was read.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.left.is_empty()
    }

    /// The next bytes of this number, if there are so many.
    pub fn take(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, left) = self.left.split_at_checked(count)?;
        self.left = left;
        Some(taken)
    }

    /// The next byte.
    pub fn byte(&mut self) -> Option<u8> {
        self.take(1).map(|byte| byte[0])
    }

    /// The next number, as [`put_number`] writes it.
    pub fn number(&mut self) -> Option<u64> {
        let mut number = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                return None;
            }
            number |= bits << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    /// The next bytes, as [`put_bytes`] writes them.
    pub fn bytes(&mut self) -> Option<&'a [u8]> {
        let count = self.number()?;
        self.take(usize::try_from(count).ok()?)
    }

    /// The next text.
    pub fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    /// A list: its length and so many elements, each of at least a byte.
    pub(crate) fn list<T>(
        &mut self,
        mut read: impl FnMut(&mut Self) -> Option<T>,
    ) -> Option<Vec<T>> {
        let count = usize::try_from(self.number()?).ok()?;
        if count > self.left.len() {
            return None;
        }
        (0..count).map(|_| read(self)).collect()
    }
}

/// Appends a list: its length and its elements.
pub(crate) fn put_list<T>(
    out: &mut Vec<u8>,
    elements: &[T],
    mut put: impl FnMut(&mut Vec<u8>, &T),
) {
    put_number(out, elements.len() as u64);
    elements.iter().for_each(|element| put(out, element));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_bytes_are_read_as_they_were_written() {
        let numbers = [0, 1, 127, 128, 300, 1 << 35, u64::MAX - 1, u64::MAX];
        let mut out = Vec::new();
        numbers.iter().for_each(|&number| put_number(&mut out, number));
        put_bytes(&mut out, b"text");
        let mut reader = Reader::new(&out);
        assert!(numbers.iter().all(|&number| reader.number() == Some(number)));
        assert_eq!(reader.text(), Some("text"));
        assert!(reader.is_empty());
    }

    #[test]
    fn what_is_cut_or_too_long_is_not_read() {
        let mut out = Vec::new();
        put_bytes(&mut out, b"text");
        assert_eq!(Reader::new(&out[..3]).bytes(), None);
        assert_eq!(Reader::new(&[0x80; 20]).number(), None);
        let long = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02];
        assert_eq!(Reader::new(&long).number(), None);
        // A list says that it has more elements than there are bytes.
        assert_eq!(Reader::new(&[0xFF, 0xFF, 0x7F, 1]).list(Reader::byte), None);
    }
}

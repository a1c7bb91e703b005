//! Reads untrusted bytes. Every read is checked.

use bytes::Bytes;

/// The error of bytes that are not a message of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(super) struct ProtocolError(pub(super) &'static str);

const SHORT: ProtocolError = ProtocolError("a message ends too early");

/// The unread part of a message.
#[derive(Debug)]
pub(super) struct Reader(pub(super) Bytes);

impl Reader {
    fn take(&mut self, count: usize) -> Result<Bytes, ProtocolError> {
        if count > self.0.len() {
            return Err(SHORT);
        }
        Ok(self.0.split_to(count))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], ProtocolError> {
        let bytes = self.take(N)?;
        bytes.as_ref().try_into().map_err(|_| SHORT)
    }

    pub(super) fn u8(&mut self) -> Result<u8, ProtocolError> {
        self.array::<1>().map(|[byte]| byte)
    }

    pub(super) fn i16(&mut self) -> Result<i16, ProtocolError> {
        self.array().map(i16::from_be_bytes)
    }

    pub(super) fn i32(&mut self) -> Result<i32, ProtocolError> {
        self.array().map(i32::from_be_bytes)
    }

    /// A text that ends with a zero.
    pub(super) fn string(&mut self) -> Result<String, ProtocolError> {
        let end = self.0.iter().position(|byte| *byte == 0);
        let end = end.ok_or(ProtocolError("a text in a message has no end"))?;
        let text = self.take(end)?;
        self.take(1)?;
        let text = std::str::from_utf8(&text);
        text.map(str::to_owned).map_err(|_| ProtocolError("a text in a message is not UTF-8"))
    }

    pub(super) fn format(&mut self) -> Result<i16, ProtocolError> {
        let format = self.i16()?;
        let is_known = matches!(format, 0 | 1);
        is_known.then_some(format).ok_or(ProtocolError("a format is neither text nor binary"))
    }

    /// The bytes of a parameter, or `None` for NULL.
    pub(super) fn value(&mut self) -> Result<Option<Bytes>, ProtocolError> {
        match self.i32()? {
            -1 => Ok(None),
            length => {
                let length = usize::try_from(length);
                self.take(length.map_err(|_| ProtocolError("a length is negative"))?).map(Some)
            }
        }
    }

    /// Reads a number of items, and the items. Memory grows with the items, not with the stated number.
    pub(super) fn list<T>(
        &mut self,
        item: impl Fn(&mut Self) -> Result<T, ProtocolError>,
    ) -> Result<Vec<T>, ProtocolError> {
        let count = self.i16()?.cast_unsigned();
        (0..count).map(|_| item(self)).collect()
    }

    pub(super) fn end<T>(&self, message: T) -> Result<T, ProtocolError> {
        if self.0.is_empty() { Ok(message) } else { Err(ProtocolError("a message is too long")) }
    }
}

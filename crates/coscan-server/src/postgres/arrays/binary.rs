//! Arrays in binary form.

use bytes::{BufMut, Bytes, BytesMut};
use pgwire::api::Type;

use super::{malformed, nested};
use crate::postgres::reader::{ProtocolError, Reader};
use crate::postgres::sqlstate::{INVALID_VALUE, PgError};

/// The elements of an array in binary form, each in binary form or `None` for NULL. Ends with an error, `22P02`, if the
/// bytes are not an array.
#[derive(Debug)]
pub(in crate::postgres) struct BinaryArray {
    rest: Reader,
    /// The number of remaining elements, or `None` once the end was checked.
    left: Option<i32>,
}

impl BinaryArray {
    /// Reads the header before the elements.
    ///
    /// # Errors
    /// With `22P02` if it is not an array of this type, with `0A000` if it has more than one dimension.
    pub(in crate::postgres) fn new(bytes: Bytes, of: &Type) -> Result<Self, PgError> {
        let malformed = |error: ProtocolError| malformed(&error.to_string());
        let mut rest = Reader(bytes);
        let mut header = || Ok((rest.i32()?, rest.i32()?, rest.i32()?));
        let (dimensions, _, oid) = header().map_err(malformed)?;
        if oid.cast_unsigned() != of.oid() {
            let text = format!("an array has elements of type {oid} where {} ({of}) is", of.oid());
            return Err(PgError::new(INVALID_VALUE, text));
        }
        let length = match dimensions {
            0 => 0,
            1 => {
                let mut bounds = || Ok((rest.i32()?, rest.i32()?));
                let (length, _first) = bounds().map_err(malformed)?;
                length
            }
            _ => return Err(nested()),
        };
        if length < 0 {
            return Err(malformed(ProtocolError("its length is negative")));
        }
        Ok(Self { rest, left: Some(length) })
    }
}

impl Iterator for BinaryArray {
    type Item = Result<Option<Bytes>, PgError>;

    fn next(&mut self) -> Option<Self::Item> {
        let read = match self.left.take()? {
            0 => self.rest.end(None).transpose()?,
            left => {
                self.left = Some(left - 1);
                self.rest.value()
            }
        };
        if read.is_err() {
            self.left = None;
        }
        Some(read.map_err(|error| malformed(&error.to_string())))
    }
}

/// Adds the header before the elements of an array in binary form.
pub(in crate::postgres) fn add_binary_header(
    to: &mut BytesMut,
    of: &Type,
    length: usize,
    has_null: bool,
) {
    to.put_i32(i32::from(length > 0)); // Dimensions.
    to.put_i32(i32::from(has_null));
    to.put_u32(of.oid());
    if length > 0 {
        to.put_i32(i32::try_from(length).unwrap_or(i32::MAX));
        to.put_i32(1); // The number of the first element.
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    fn read(bytes: Bytes, of: &Type) -> Result<Vec<Option<Bytes>>, PgError> {
        BinaryArray::new(bytes, of)?.collect()
    }

    fn to_binary(elements: &[Option<String>]) -> Bytes {
        let mut bytes = BytesMut::new();
        let has_null = elements.iter().any(Option::is_none);
        add_binary_header(&mut bytes, &Type::TEXT, elements.len(), has_null);
        for element in elements {
            let length = element.as_ref().map_or(-1, |text| i32::try_from(text.len()).unwrap());
            bytes.put_i32(length);
            bytes.put_slice(element.as_deref().unwrap_or_default().as_bytes());
        }
        bytes.freeze()
    }

    #[test]
    fn what_is_no_array_is_refused() {
        let bytes = to_binary(&[Some("a".to_owned())]);
        assert_eq!(read(bytes.clone(), &Type::INT4).unwrap_err().code, "22P02");
        for end in 0..bytes.len() {
            assert_eq!(read(bytes.slice(..end), &Type::TEXT).unwrap_err().code, "22P02");
        }
        for array in [bytes, to_binary(&[])] {
            let longer = [&array[..], b"x"].concat();
            assert_eq!(read(longer.into(), &Type::TEXT).unwrap_err().code, "22P02");
        }
    }

    proptest! {
        #[test]
        fn arrays_are_read_as_they_are_written(
            elements in prop::collection::vec(prop::option::of(any::<String>()), 0..6),
        ) {
            let expected: Vec<_> =
                elements.iter().map(|text| text.clone().map(Bytes::from)).collect();
            prop_assert_eq!(read(to_binary(&elements), &Type::TEXT).unwrap(), expected);
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = read(Bytes::from(bytes), &Type::TEXT);
        }
    }
}

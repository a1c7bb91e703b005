//! Values within the text of a record.

use bytes::{BufMut, BytesMut};

/// Adds a value within the text of a record. It is quoted if necessary, with quotes and backslashes doubled.
pub(super) fn add_quoted(to: &mut BytesMut, value: &[u8]) {
    let is_special = |byte: &u8| b"\"\\(),".contains(byte) || byte.is_ascii_whitespace();
    if !value.is_empty() && !value.iter().any(is_special) {
        return to.put_slice(value);
    }
    to.put_u8(b'"');
    for byte in value {
        if b"\"\\".contains(byte) {
            to.put_u8(*byte);
        }
        to.put_u8(*byte);
    }
    to.put_u8(b'"');
}

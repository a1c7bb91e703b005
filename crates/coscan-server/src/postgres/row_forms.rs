//! The forms in which rows are sent: as messages, or copied as text, CSV or binary.

use bytes::{BufMut, BytesMut};

/// The form in which rows are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RowForm {
    /// Each as a message of its own.
    Message,
    Copied(CopyForm),
}

/// The form of copied rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CopyForm {
    Binary,
    /// One line for each row, with escapes.
    Text {
        delimiter: u8,
        null: String,
    },
    /// RFC 4180. Values are quoted if necessary.
    Csv {
        delimiter: u8,
        null: String,
        quote: u8,
    },
}

impl CopyForm {
    /// Adds a value of a text form, or `None` for NULL.
    pub(super) fn add(&self, to: &mut BytesMut, value: Option<&[u8]>) {
        match (self, value) {
            (Self::Binary, _) => {}
            (Self::Text { null, .. } | Self::Csv { null, .. }, None) => {
                to.put_slice(null.as_bytes());
            }
            (Self::Text { delimiter, .. }, Some(value)) => {
                for byte in value {
                    match byte {
                        b'\n' => to.put_slice(b"\\n"),
                        b'\r' => to.put_slice(b"\\r"),
                        b'\t' => to.put_slice(b"\\t"),
                        0x08 => to.put_slice(b"\\b"),
                        0x0b => to.put_slice(b"\\v"),
                        0x0c => to.put_slice(b"\\f"),
                        b'\\' => to.put_slice(b"\\\\"),
                        byte if byte == delimiter => to.put_slice(&[b'\\', *byte]),
                        byte => to.put_u8(*byte),
                    }
                }
            }
            (Self::Csv { delimiter, null, quote }, Some(value)) => {
                let is_special = |byte: &u8| [*delimiter, *quote, b'\n', b'\r'].contains(byte);
                if value != null.as_bytes() && value != b"\\." && !value.iter().any(is_special) {
                    return to.put_slice(value);
                }
                to.put_u8(*quote);
                for byte in value {
                    if byte == quote {
                        to.put_u8(*quote);
                    }
                    to.put_u8(*byte);
                }
                to.put_u8(*quote);
            }
        }
    }

    /// The delimiter between two values.
    pub(super) fn delimiter(&self) -> Option<u8> {
        match self {
            Self::Binary => None,
            Self::Text { delimiter, .. } | Self::Csv { delimiter, .. } => Some(*delimiter),
        }
    }
}

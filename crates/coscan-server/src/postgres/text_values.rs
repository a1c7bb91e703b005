//! Parameter values that are texts here.

use bytes::Bytes;

use crate::postgres::numeric;
use crate::postgres::sqlstate::{INVALID_VALUE, PgError};

/// The error of a value that cannot be read.
pub(super) fn invalid(text: impl Into<String>) -> PgError {
    PgError::new(INVALID_VALUE, text)
}

/// The text of a NUMERIC. It is cast, with all its digits, where it is compared.
pub(super) fn number(bytes: Bytes, is_binary: bool) -> Result<String, PgError> {
    if is_binary {
        return numeric::from_binary(bytes).map_err(|error| invalid(error.to_string()));
    }
    let number = text(&bytes)?.trim_ascii();
    if !number.bytes().any(|byte| byte.is_ascii_digit()) {
        return Err(invalid(format!("invalid value for type numeric: \"{number}\"")));
    }
    Ok(number.to_owned())
}

/// The text of a UUID. Text values are not changed.
pub(super) fn uuid(bytes: Bytes, is_binary: bool) -> Result<String, PgError> {
    if !is_binary {
        return Ok(text(&bytes)?.trim_ascii().to_ascii_lowercase());
    }
    let bytes: [u8; 16] =
        bytes.as_ref().try_into().map_err(|_| invalid("a UUID has sixteen bytes"))?;
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| &digits[group]);
    Ok(groups.join("-"))
}

/// The text of JSON. The binary form of `jsonb` begins with a version number.
pub(super) fn json(bytes: Bytes, is_binary: bool) -> Result<String, PgError> {
    let is_versioned = is_binary && bytes.first() == Some(&1);
    text(&bytes.slice(usize::from(is_versioned)..)).map(str::to_owned)
}

/// A text in UTF-8, without zero bytes.
pub(super) fn text(bytes: &Bytes) -> Result<&str, PgError> {
    let text = std::str::from_utf8(bytes).map_err(|_| invalid("a text is not UTF-8"))?;
    match text.contains('\0') {
        true => Err(invalid("a text has a zero byte")),
        false => Ok(text),
    }
}

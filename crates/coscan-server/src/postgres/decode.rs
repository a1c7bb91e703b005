//! Decodes messages of clients from untrusted bytes.

use bytes::Bytes;

use crate::postgres::reader::{ProtocolError, Reader};

/// The number of a TLS request, in place of a version.
pub(super) const SSL_REQUEST: i32 = 80_877_103;
/// The number of a GSSAPI encryption request, in place of a version.
pub(super) const GSS_REQUEST: i32 = 80_877_104;
/// The number of a cancel request, in place of a version.
pub(super) const CANCEL_REQUEST: i32 = 80_877_102;

/// The first message of a connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Startup {
    Ssl,
    Gss,
    Cancel {
        pid: i32,
        key: Bytes,
    },
    /// A login with version 3.`minor`.
    Login {
        minor: i32,
        parameters: Vec<(String, String)>,
    },
}

/// Later messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Frontend {
    Query(String),
    Parse {
        name: String,
        sql: String,
        types: Vec<u32>,
    },
    Bind(Bind),
    DescribeStatement(String),
    DescribePortal(String),
    Execute {
        portal: String,
        rows_max: u32,
    },
    CloseStatement(String),
    ClosePortal(String),
    Flush,
    Sync,
    Terminate,
    /// A part of a login, whose form depends on the mechanism.
    Password(Bytes),
    /// A part of the rows of a COPY.
    CopyData(Bytes),
    /// The end of the rows of a COPY.
    CopyDone,
    /// The client gives a COPY up, and says why.
    CopyFail(String),
    FunctionCall,
    /// A message of a known kind, with the error in it. Later messages are not affected.
    Unreadable {
        is_query: bool,
        error: ProtocolError,
    },
}

/// Binds values to the parameters of a statement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bind {
    pub(super) portal: String,
    pub(super) statement: String,
    pub(super) parameter_formats: Vec<i16>,
    pub(super) parameters: Vec<Option<Bytes>>,
    pub(super) result_formats: Vec<i16>,
}

/// Decodes a first message, without its length.
pub(super) fn decode_startup(body: Bytes) -> Result<Startup, ProtocolError> {
    let mut reader = Reader(body);
    let version = reader.i32()?;
    match version {
        SSL_REQUEST => return reader.end(Startup::Ssl),
        GSS_REQUEST => return reader.end(Startup::Gss),
        CANCEL_REQUEST => {
            let pid = reader.i32()?;
            return Ok(Startup::Cancel { pid, key: reader.0 });
        }
        _ => {}
    }
    if version >> 16 != 3 {
        return Err(ProtocolError("only version 3 of the protocol is supported"));
    }
    let mut parameters = Vec::new();
    loop {
        let name = reader.string()?;
        if name.is_empty() {
            break;
        }
        parameters.push((name, reader.string()?));
    }
    reader.end(Startup::Login { minor: version & 0xffff, parameters })
}

/// Decodes a message of this kind. `body` is exactly one message, without kind and length.
///
/// # Errors
/// If there is no such kind, or a Flush, Sync or Terminate has a body. Errors in Query, Parse, Bind, Describe, Close or
/// Execute give [`Frontend::Unreadable`].
pub(super) fn decode(kind: u8, body: Bytes) -> Result<Frontend, ProtocolError> {
    match kind {
        b'Q' | b'P' | b'B' | b'D' | b'C' | b'E' => Ok(read(kind, body)
            .unwrap_or_else(|error| Frontend::Unreadable { is_query: kind == b'Q', error })),
        _ => read(kind, body),
    }
}

fn read(kind: u8, body: Bytes) -> Result<Frontend, ProtocolError> {
    let mut reader = Reader(body);
    let message = match kind {
        b'Q' => Frontend::Query(reader.string()?),
        b'P' => {
            let (name, sql) = (reader.string()?, reader.string()?);
            let types = reader.list(|reader| reader.i32().map(i32::cast_unsigned))?;
            Frontend::Parse { name, sql, types }
        }
        b'B' => Frontend::Bind(Bind {
            portal: reader.string()?,
            statement: reader.string()?,
            parameter_formats: reader.list(Reader::format)?,
            parameters: reader.list(Reader::value)?,
            result_formats: reader.list(Reader::format)?,
        }),
        b'D' => match reader.u8()? {
            b'S' => Frontend::DescribeStatement(reader.string()?),
            b'P' => Frontend::DescribePortal(reader.string()?),
            _ => return Err(ProtocolError("Describe names neither a statement nor a portal")),
        },
        b'C' => match reader.u8()? {
            b'S' => Frontend::CloseStatement(reader.string()?),
            b'P' => Frontend::ClosePortal(reader.string()?),
            _ => return Err(ProtocolError("Close names neither a statement nor a portal")),
        },
        b'E' => {
            let portal = reader.string()?;
            // Negative numbers mean all rows, as in PostgreSQL.
            Frontend::Execute { portal, rows_max: u32::try_from(reader.i32()?).unwrap_or(0) }
        }
        b'H' => Frontend::Flush,
        b'S' => Frontend::Sync,
        b'X' => Frontend::Terminate,
        b'p' => return Ok(Frontend::Password(reader.0)),
        b'd' => return Ok(Frontend::CopyData(reader.0)),
        b'c' => Frontend::CopyDone,
        b'f' => Frontend::CopyFail(reader.string()?),
        b'F' => return Ok(Frontend::FunctionCall),
        _ => return Err(ProtocolError("a message is of no known kind")),
    };
    reader.end(message)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use proptest::prelude::*;

    use super::*;

    const KINDS: &[u8] = b"QPBDCEHSXpdcfF";

    fn of(kind: u8, body: &[u8]) -> Result<Frontend, ProtocolError> {
        decode(kind, Bytes::copy_from_slice(body))
    }

    #[test]
    fn messages_are_read() {
        assert_eq!(of(b'Q', b"SELECT 1\0"), Ok(Frontend::Query("SELECT 1".to_owned())));
        let parse = of(b'P', b"s\0SELECT $1\0\0\x01\0\0\0\x17").unwrap();
        let expected =
            Frontend::Parse { name: "s".to_owned(), sql: "SELECT $1".to_owned(), types: vec![23] };
        assert_eq!(parse, expected);
        let bind = of(b'B', b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\0").unwrap();
        let expected = Bind {
            portal: "p".to_owned(),
            statement: "s".to_owned(),
            parameter_formats: vec![1],
            parameters: vec![Some(Bytes::from_static(b"ab")), None],
            result_formats: vec![],
        };
        assert_eq!(bind, Frontend::Bind(expected));
    }

    #[test]
    fn any_number_of_rows_is_read() {
        let rows = |count: i32| of(b'E', &[&b"\0"[..], &count.to_be_bytes()].concat()).unwrap();
        let execute = |rows_max| Frontend::Execute { portal: String::new(), rows_max };
        assert_eq!(rows(-1), execute(0));
        assert_eq!(rows(i32::MIN), execute(0));
        assert_eq!(rows(i32::MAX), execute(i32::MAX.cast_unsigned()));
    }

    #[test]
    fn short_long_and_malformed_messages_are_refused() {
        for (kind, body) in [
            (b'E', &b""[..]),
            (b'E', b"\0"),
            (b'Q', b"SELECT 1"),
            (b'Q', b"SELECT 1\0x"),
            (b'Q', b"\xff\0"),
            (b'D', b""),
            (b'D', b"x\0"),
            (b'B', b"\0\0\0\0\0\x01\0\0\0\x09ab\0\0"),
            (b'B', b"\0\0\0\0\0\x01\x80\0\0\0\0\0"),
            (b'B', b"\0\0\0\x01\0\x02\0\0\0\0"),
            (b'P', b"\0\0\xff\xff"),
            (b'S', b"x"),
            (b'z', b""),
        ] {
            let is_refused = matches!(of(kind, body), Err(_) | Ok(Frontend::Unreadable { .. }));
            assert!(is_refused, "{kind} {body:?}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read_or_refused(body in prop::collection::vec(any::<u8>(), 0..200)) {
            for kind in KINDS {
                let _ = of(*kind, &body);
            }
            let _ = decode_startup(Bytes::from(body));
        }

        #[test]
        fn mutated_messages_are_read_or_refused(
            at in 0..60_usize, to in any::<u8>(), cut in 0..60_usize,
        ) {
            let bind = b"p\0s\0\0\x01\0\x01\0\x02\0\0\0\x02ab\xff\xff\xff\xff\0\x01\0\x01";
            let login = b"\0\x03\0\0user\0ann\0database\0coscan\0\0";
            for (kind, message) in [(Some(b'B'), &bind[..]), (None, &login[..])] {
                let mut body = message.to_vec();
                if let Some(byte) = body.get_mut(at) {
                    *byte = to;
                }
                body.truncate(cut);
                match kind {
                    Some(kind) => drop(of(kind, &body)),
                    None => drop(decode_startup(Bytes::from(body))),
                }
            }
        }
    }
}

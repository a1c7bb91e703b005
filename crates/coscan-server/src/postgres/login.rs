//! Logs clients in, from the first byte of a connection to the session of a user. No state of it is shared with later
//! messages.

use std::io;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::{Buf, Bytes, BytesMut};
use pgwire::messages::PgWireBackendMessage;
use pgwire::messages::startup::{Authentication, NegotiateProtocolVersion};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::listen::{Certificate, CountedStream, MaybeTls};
use crate::postgres::decode::{Frontend, Startup, decode_startup};
use crate::postgres::frame::{ReadError, read, read_body};
use crate::postgres::reader::ProtocolError;
use crate::postgres::sqlstate::{
    INVALID_AUTHORIZATION, INVALID_PASSWORD, PROTOCOL_VIOLATION, PgError,
};
use crate::postgres::startup_settings::settings;
use crate::sql::{LoginError, Proof, Session, SqlService};
use crate::users::{ChannelBinding, MECHANISM, MECHANISM_PLUS, Scram, ScramError};

/// The maximum length of a message before a client has logged in, in bytes.
const MESSAGE_BYTES_MAX: usize = 10_000;

/// The protocol in the ALPN extension of TLS.
const ALPN: &[u8] = b"postgresql";

/// The first byte of a connection that begins with TLS.
const TLS_HANDSHAKE: u8 = 0x16;

/// The result of a negotiation.
pub(super) enum Negotiated {
    Login {
        stream: MaybeTls,
        /// The channel binding data, or `None` without TLS, or for certificates without it.
        binding: Option<Arc<[u8]>>,
        minor: i32,
        parameters: Vec<(String, String)>,
    },
    Cancel {
        pid: i32,
        secret: Bytes,
    },
    /// The connection ended before a request.
    Nothing,
}

/// Negotiates encryption, and reads the request of the client.
pub(super) async fn negotiate(
    tcp: CountedStream,
    certificate: Option<&Certificate>,
) -> Result<Negotiated, ReadError> {
    let (mut stream, mut binding) = match certificate {
        // Only TLS messages begin with this byte. The protocol must be named by ALPN, since it was
        // not negotiated before.
        Some(certificate) if tcp.peek().await? == Some(TLS_HANDSHAKE) => {
            let (stream, binding) = encrypt(tcp, certificate).await?;
            if stream.get_ref().1.alpn_protocol() != Some(ALPN) {
                return Err(ProtocolError("direct TLS without ALPN `postgresql`").into());
            }
            (MaybeTls::Tls(Box::new(stream)), binding)
        }
        _ => (MaybeTls::Plain(tcp), None),
    };
    let mut was_refused = false;
    loop {
        let body = match read_body(&mut stream, MESSAGE_BYTES_MAX).await {
            Ok(body) => body,
            Err(ReadError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
                return Ok(Negotiated::Nothing);
            }
            Err(error) => return Err(error),
        };
        match decode_startup(body)? {
            Startup::Ssl => {
                stream = match (stream, certificate) {
                    (MaybeTls::Plain(mut tcp), Some(certificate)) => {
                        tcp.write_all(b"S").await?;
                        // Nothing is read in advance, so bytes that were sent unencrypted are taken
                        // for TLS, and refused.
                        let (stream, bound) = encrypt(tcp, certificate).await?;
                        binding = bound;
                        MaybeTls::Tls(Box::new(stream))
                    }
                    (MaybeTls::Plain(mut tcp), None) if !was_refused => {
                        tcp.write_all(b"N").await?;
                        was_refused = true;
                        MaybeTls::Plain(tcp)
                    }
                    _ => return Err(ProtocolError("TLS was asked for twice").into()),
                };
            }
            Startup::Gss => stream.write_all(b"N").await?,
            Startup::Cancel { pid, key } => return Ok(Negotiated::Cancel { pid, secret: key }),
            Startup::Login { minor, parameters } => {
                return Ok(Negotiated::Login { stream, binding, minor, parameters });
            }
        }
    }
}

/// Creates a TLS connection. Returns it with its channel binding data.
async fn encrypt(
    tcp: CountedStream,
    certificate: &Certificate,
) -> io::Result<(TlsStream<CountedStream>, Option<Arc<[u8]>>)> {
    let (config, binding) = certificate.for_protocols(&[ALPN]);
    Ok((TlsAcceptor::from(config).accept(tcp).await?, binding))
}

/// The reason why a login fails. The client gets the error, or is disconnected.
#[derive(Debug)]
pub(super) enum LoginFailure {
    Refused(PgError),
    Io(io::Error),
}

impl From<io::Error> for LoginFailure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

impl From<ReadError> for LoginFailure {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Io(error) => Self::Io(error),
            ReadError::Protocol(error) => refused(PROTOCOL_VIOLATION, error.to_string()),
        }
    }
}

fn refused(code: &'static str, text: impl Into<String>) -> LoginFailure {
    LoginFailure::Refused(PgError::new(code, text))
}

/// The client that logs in.
#[derive(Clone, Copy, Debug)]
pub(super) struct Client<'a> {
    pub(super) address: IpAddr,
    /// The negotiated channel binding data.
    pub(super) binding: Option<&'a [u8]>,
    pub(super) minor: i32,
    pub(super) parameters: &'a [(String, String)],
}

/// Logs a user in. The client is not told, so the caller has to send the answer.
pub(super) async fn login(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    service: &Arc<SqlService>,
    client: &Client<'_>,
) -> Result<Session, LoginFailure> {
    let &Client { address, binding, minor, parameters } = client;
    let parameter = |name: &str| {
        let mut known = parameters.iter().filter(|(known, _)| known == name);
        known.next_back().map(|(_, value)| value.as_str())
    };
    if minor > 2 || parameters.iter().any(|(name, _)| name.starts_with("_pq_.")) {
        send(stream, &negotiate_version(parameters)).await?;
    }
    let name = parameter("user").filter(|name| !name.is_empty());
    let name = name.ok_or_else(|| refused(INVALID_AUTHORIZATION, "no user was given"))?;
    let session = if service.users().check_passwords() {
        by_scram(stream, service, address, binding, name).await?
    } else {
        let session = service.login(name, Proof::None).await;
        session.map_err(|error| refused(INVALID_AUTHORIZATION, error.to_string()))?
    };
    let database = parameter("database").unwrap_or(name);
    log::debug!("{name} logged in to database {database}");
    for (name, value) in settings(parameters) {
        session.set(&name, Some(&value)).map_err(|error| LoginFailure::Refused(error.into()))?;
    }
    Ok(session)
}

async fn by_scram(
    stream: &mut (impl AsyncRead + AsyncWrite + Unpin),
    service: &Arc<SqlService>,
    address: IpAddr,
    binding: Option<&[u8]>,
    name: &str,
) -> Result<Session, LoginFailure> {
    let malformed = |error: ScramError| refused(PROTOCOL_VIOLATION, error.to_string());
    let wrong = |error: LoginError| match error {
        LoginError::Wrong => {
            refused(INVALID_PASSWORD, format!("password authentication failed for user \"{name}\""))
        }
        LoginError::TooMany(_) => refused(INVALID_AUTHORIZATION, error.to_string()),
    };
    let failed = service.users().failed_logins();
    failed.check(name, Some(address)).map_err(|time| wrong(LoginError::TooMany(time)))?;
    let mechanisms = [binding.map(|_| MECHANISM_PLUS), Some(MECHANISM)];
    let mechanisms = mechanisms.into_iter().flatten().map(str::to_owned).collect();
    send(stream, &authentication(Authentication::SASL(mechanisms))).await?;
    let (chosen, initial) = client_first(password(stream).await?)
        .ok_or_else(|| refused(PROTOCOL_VIOLATION, "the login is not by SCRAM-SHA-256"))?;
    let bound = match (&chosen[..], binding) {
        (mechanism, _) if mechanism == MECHANISM.as_bytes() => {
            ChannelBinding::No { was_offered: binding.is_some() }
        }
        (mechanism, Some(binding)) if mechanism == MECHANISM_PLUS.as_bytes() => {
            ChannelBinding::To(binding)
        }
        _ => return Err(refused(PROTOCOL_VIOLATION, "the login is not by SCRAM-SHA-256")),
    };
    let scram = Scram::start(service.users(), name, &initial, bound).map_err(malformed)?;
    let server_first = Bytes::copy_from_slice(scram.server_first().as_bytes());
    send(stream, &authentication(Authentication::SASLContinue(server_first))).await?;
    let (server_final, proof) = match scram.finish(&password(stream).await?) {
        Ok((server_final, verified)) => (server_final, Proof::Scram(verified)),
        Err(ScramError::WrongProof) => (String::new(), Proof::Wrong),
        Err(error) => return Err(malformed(error)),
    };
    let session = service.login_from(Some(address), name, proof).await.map_err(wrong)?;
    send(stream, &authentication(Authentication::SASLFinal(server_final.into()))).await?;
    Ok(session)
}

fn authentication(message: Authentication) -> PgWireBackendMessage {
    PgWireBackendMessage::Authentication(message)
}

/// The mechanism that the client has chosen, and its first message in it.
fn client_first(mut body: Bytes) -> Option<(Bytes, Bytes)> {
    let end = body.iter().position(|byte| *byte == 0)?;
    let mechanism = body.split_to(end);
    body.advance(1);
    if body.len() < 4 {
        return None;
    }
    let length = usize::try_from(body.get_i32()).ok()?;
    (length == body.len()).then_some((mechanism, body))
}

async fn password(stream: &mut (impl AsyncRead + Unpin)) -> Result<Bytes, LoginFailure> {
    match read(stream, MESSAGE_BYTES_MAX).await? {
        Some((Frontend::Password(body), _)) => Ok(body),
        Some(_) => Err(refused(PROTOCOL_VIOLATION, "the client has not logged in yet")),
        None => Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
    }
}

async fn send(
    stream: &mut (impl AsyncWrite + Unpin),
    message: &PgWireBackendMessage,
) -> io::Result<()> {
    let mut bytes = BytesMut::new();
    message.encode(&mut bytes).map_err(io::Error::other)?;
    stream.write_all(&bytes).await?;
    stream.flush().await
}

fn negotiate_version(parameters: &[(String, String)]) -> PgWireBackendMessage {
    let options = parameters.iter().map(|(name, _)| name).filter(|name| name.starts_with("_pq_."));
    let options = options.cloned().collect();
    PgWireBackendMessage::NegotiateProtocolVersion(NegotiateProtocolVersion::new(2, options))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_lengths_are_refused() {
        let body = |text: &str, length: i32, rest: &str| {
            Bytes::from([text.as_bytes(), b"\0", &length.to_be_bytes(), rest.as_bytes()].concat())
        };
        let read = (Bytes::from_static(MECHANISM.as_bytes()), Bytes::from_static(b"n,,"));
        assert_eq!(client_first(body(MECHANISM, 3, "n,,")), Some(read));
        for wrong in [
            body(MECHANISM, 4, "n,,"),
            body(MECHANISM, -1, ""),
            Bytes::from_static(b"SCRAM-SHA-256\0\0\0"),
            Bytes::from_static(b"SCRAM-SHA-256"),
            Bytes::new(),
        ] {
            assert_eq!(client_first(wrong), None);
        }
    }
}

//! The introduction of two servers: TLS, a [`Hello`] of the one that dials, an [`Answer`].

use std::io;
use std::sync::Arc;
use std::time::Duration;

use coscan_runtime::ring::Extents;
use rustls::pki_types::ServerName;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

use crate::credentials::MutualTls;
use crate::frame;

/// The version of the protocol. Servers of different versions do not share.
const VERSION: u32 = 3;

/// The time within which a connection must be made.
const DIALING_MAX: Duration = Duration::from_secs(5);

/// The time within which others must introduce themselves.
const INTRODUCTION_MAX: Duration = Duration::from_secs(5);

/// The introduction of a server that dials.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Hello {
    version: u32,
    /// The version of the rule by which files are cut.
    extents_rule: u32,
    /// The address by which others know it.
    pub(crate) address: String,
    pub(crate) purpose: Purpose,
}

/// The purpose of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) enum Purpose {
    /// To learn the address of the other server: the [`Answer`] has it.
    Discovery,
    /// To send it messages.
    Messages,
    /// To send it fragments that go round.
    Fragments,
}

#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Answer {
    Welcome {
        /// The address by which others know the server that answers.
        address: String,
    },
    /// The server has dialled itself, or one with the same address.
    SameAddress,
    OtherVersion {
        version: u32,
        extents_rule: u32,
    },
}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(crate) enum DialError {
    #[error(transparent)]
    Io(#[from] io::Error),
    #[error("a server with the address of this one answers there")]
    SameAddress,
    #[error(transparent)]
    OtherVersion(#[from] OtherVersion),
}

/// Servers of different versions do not share.
#[derive(Debug, thiserror::Error)]
#[error(
    "it speaks version {theirs}.{their_rule}, this server version {VERSION}.{}; run the same version of coscan on all servers",
    Extents::RULE
)]
pub(crate) struct OtherVersion {
    theirs: u32,
    their_rule: u32,
}

impl Hello {
    pub(crate) fn of(address: &str, purpose: Purpose) -> Self {
        let address = address.to_owned();
        Self { version: VERSION, extents_rule: Extents::RULE, address, purpose }
    }

    fn answer(&self, own: &str) -> Answer {
        if (self.version, self.extents_rule) != (VERSION, Extents::RULE) {
            return Answer::OtherVersion { version: VERSION, extents_rule: Extents::RULE };
        }
        if self.address == own {
            return Answer::SameAddress;
        }
        Answer::Welcome { address: own.to_owned() }
    }
}

/// Makes a connection to the server at `dialed`, which has welcomed this one. Returns it with the address of that
/// server.
pub(crate) async fn dial(
    own: &str,
    dialed: &str,
    purpose: Purpose,
    tls: &MutualTls,
) -> Result<(String, impl AsyncRead + AsyncWrite + Unpin + use<>), DialError> {
    let welcomed = async {
        let mut stream = connect(dialed, tls).await?;
        stream.write_all(&frame::encode(&Hello::of(own, purpose))?).await?;
        stream.flush().await?;
        let answer: Option<Answer> = frame::read_header(&mut stream).await?;
        match answer.ok_or_else(|| io::Error::from(io::ErrorKind::UnexpectedEof))? {
            Answer::Welcome { address } => Ok((address, stream)),
            Answer::SameAddress => Err(DialError::SameAddress),
            Answer::OtherVersion { version: theirs, extents_rule: their_rule } => {
                Err(OtherVersion { theirs, their_rule }.into())
            }
        }
    };
    let welcomed = tokio::time::timeout(DIALING_MAX, welcomed).await;
    welcomed.unwrap_or_else(|_| Err(io::Error::from(io::ErrorKind::TimedOut).into()))
}

async fn connect(
    address: &str,
    tls: &MutualTls,
) -> io::Result<impl AsyncRead + AsyncWrite + Unpin + use<>> {
    let stream = TcpStream::connect(address).await?;
    stream.set_nodelay(true)?;
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
    let name = match &tls.name {
        Some(name) => name.clone(),
        None => ServerName::try_from(host).map_err(|error| frame::invalid(error.to_string()))?,
    };
    TlsConnector::from(Arc::clone(&tls.client)).connect(name, stream).await
}

/// Answers a server that has dialled; `None` if it is this server itself, or has the same address.
///
/// # Errors
/// If the connection breaks, or the server that dialled may not share or is of another version.
pub(crate) async fn welcome(
    own: &str,
    stream: TcpStream,
    tls: &TlsAcceptor,
) -> io::Result<Option<(Hello, impl AsyncRead + AsyncWrite + Unpin + use<>)>> {
    let welcomed = async {
        stream.set_nodelay(true)?;
        let mut stream = BufReader::with_capacity(64 << 10, tls.accept(stream).await?);
        let hello: Option<Hello> = frame::read_header(&mut stream).await?;
        let hello = hello.ok_or(io::ErrorKind::UnexpectedEof)?;
        let answer = hello.answer(own);
        stream.write_all(&frame::encode(&answer)?).await?;
        stream.flush().await?;
        match answer {
            Answer::Welcome { .. } => Ok(Some((hello, stream))),
            Answer::SameAddress => Ok(None),
            Answer::OtherVersion { .. } => {
                let Hello { version: theirs, extents_rule: their_rule, .. } = hello;
                Err(io::Error::other(OtherVersion { theirs, their_rule }))
            }
        }
    };
    let welcomed = tokio::time::timeout(INTRODUCTION_MAX, welcomed).await;
    welcomed.unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
}

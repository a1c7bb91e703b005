//! A client that can send arbitrary bytes.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::in_time;

/// A connection without a client library.
pub(crate) struct Wire(pub(crate) TcpStream);

/// A message of the server: its kind and its bytes.
pub(crate) type Message = (u8, Vec<u8>);

impl Wire {
    pub(crate) async fn connect(to: SocketAddr) -> Self {
        Self(TcpStream::connect(to).await.unwrap())
    }

    pub(crate) async fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
    }

    /// Sends the first message of a login.
    pub(crate) async fn login(&mut self, user: &str) {
        let mut body = 196_608_i32.to_be_bytes().to_vec();
        body.extend(format!("user\0{user}\0database\0coscan\0\0").bytes());
        self.send(&framed(None, &body)).await;
    }

    /// The next message, or `None` at the end of the connection.
    pub(crate) async fn next(&mut self) -> Option<Message> {
        let next = async {
            let kind = self.0.read_u8().await.ok()?;
            let length = self.0.read_i32().await.ok()? - 4;
            let mut body = vec![0; usize::try_from(length).unwrap()];
            self.0.read_exact(&mut body).await.ok()?;
            Some((kind, body))
        };
        in_time(next).await
    }

    /// All messages up to the first of this kind, or to the end of the connection.
    pub(crate) async fn until(&mut self, kind: u8) -> Vec<Message> {
        let mut messages = Vec::new();
        while let Some(message) = self.next().await {
            let is_last = message.0 == kind;
            messages.push(message);
            if is_last {
                break;
            }
        }
        messages
    }

    /// A connection to a server without passwords that is ready for statements.
    pub(crate) async fn ready(to: SocketAddr) -> Self {
        let mut wire = Self::connect(to).await;
        wire.login("ann").await;
        let messages = wire.until(b'Z').await;
        assert_eq!(messages.last().unwrap().0, b'Z', "{messages:?}");
        wire
    }
}

/// A message with its kind and length.
pub(crate) fn framed(kind: Option<u8>, body: &[u8]) -> Vec<u8> {
    let length = i32::try_from(body.len() + 4).unwrap();
    kind.into_iter().chain(length.to_be_bytes()).chain(body.iter().copied()).collect()
}

/// The SQLSTATE of an error.
pub(crate) fn code(message: &Message) -> Option<String> {
    let (b'E', body) = message else { return None };
    let mut fields = body.split(|byte| *byte == 0);
    let field = fields.find(|field| field.first() == Some(&b'C'))?;
    Some(String::from_utf8_lossy(&field[1..]).into_owned())
}

//! An HTTP client that can send arbitrary requests.

use std::net::SocketAddr;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;

use super::in_time;

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Answer {
    /// The value of a header.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut pairs = self.head.lines().filter_map(|line| line.split_once(": "));
        pairs.find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The cookie of the answer, in the form in which a request sends it.
    pub(crate) fn cookie(&self) -> Option<&str> {
        self.header("set-cookie")?.split(';').next()
    }
}

/// Requests a path over a connection of its own.
pub(crate) async fn get(to: SocketAddr, path: &str, headers: &[(&str, &str)]) -> Answer {
    let host = to.to_string();
    let has_host = headers.iter().any(|(name, _)| *name == "host");
    let host = [("host", &*host)].into_iter().filter(|_| !has_host);
    let headers: Vec<_> = host.chain(headers.iter().copied()).collect();
    ask(TcpStream::connect(to).await.unwrap(), path, &headers).await
}

pub(crate) async fn ask(
    mut stream: impl AsyncRead + AsyncWrite + Unpin,
    path: &str,
    headers: &[(&str, &str)],
) -> Answer {
    let headers: String =
        headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!("GET {path} HTTP/1.1\r\n{headers}connection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    let read = stream.read_to_string(&mut text);
    in_time(read).await.unwrap();
    let (head, body) = text.split_once("\r\n\r\n").expect("an answer");
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// The header of a login by HTTP Basic.
pub(crate) fn basic(user: &str, password: &str) -> (&'static str, String) {
    use base64::Engine as _;
    let text = base64::engine::general_purpose::STANDARD.encode(format!("{user}:{password}"));
    ("authorization", format!("Basic {text}"))
}

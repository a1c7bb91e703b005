//! A line to a server that stops carrying.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A line that carries what others send to a server, until it has carried this many bytes.
#[derive(Clone, Debug)]
pub(super) struct Line {
    left: Arc<AtomicI64>,
}

impl Line {
    /// A line to a server, and its own address.
    pub(super) async fn to(server: String) -> (Self, String) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let begins = listener.local_addr().unwrap().to_string();
        let line = Self { left: Arc::new(AtomicI64::new(i64::MAX)) };
        let carries = line.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let server = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(carries.clone().carry(stream, server));
            }
        });
        (line, begins)
    }

    async fn carry(self, from: TcpStream, to: TcpStream) {
        let ((mut from, mut back_to), (mut back_from, mut to)) =
            (from.into_split(), to.into_split());
        let back = tokio::io::copy(&mut back_from, &mut back_to);
        let there = async {
            let mut bytes = vec![0; 1_000];
            loop {
                let read = from.read(&mut bytes).await? as i64;
                if read == 0 {
                    return to.shutdown().await;
                }
                if self.left.fetch_sub(read, Ordering::Relaxed) < read {
                    std::future::pending().await // It is still there, and carries nothing.
                }
                to.write_all(&bytes[..read as usize]).await?;
            }
        };
        let _broken_or_not = tokio::join!(back, there);
    }

    pub(super) fn stall_after(&self, bytes: i64) {
        self.left.store(bytes, Ordering::Relaxed);
    }
}

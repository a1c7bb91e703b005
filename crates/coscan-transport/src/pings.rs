//! Pings, which ask whether the other side of a connection is alive, and whether it has a connection back.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::frame::{self, ALIVE, UNREACHED};

/// The time without an answer after which the other side is not alive. Pages that were sent before a question come
/// first.
const SILENCE_MAX: Duration = Duration::from_secs(10);

/// The time to connect back after which its lack is reported.
const ONE_WAY_MAX: Duration = Duration::from_secs(10);

/// The pings of a connection.
#[derive(Debug)]
pub(crate) struct Pings {
    /// The time since which an answer has been missing.
    asked: watch::Sender<Option<Instant>>,
}

impl Default for Pings {
    fn default() -> Self {
        Self { asked: watch::Sender::new(None) }
    }
}

impl Pings {
    /// Whether to ask. There is one question at a time, since the answer to a later one would hide that the first is
    /// missing.
    pub(crate) fn ask(&self) -> bool {
        self.asked.send_if_modified(|asked| {
            let asks = asked.is_none();
            asked.get_or_insert_with(Instant::now);
            asks
        })
    }

    /// Takes the answers, until one is missing or the connection breaks. `answered` is told whether the other side has
    /// a connection back. `one_way` is called once if it has none for long.
    pub(crate) async fn hear(
        &self,
        back: &mut (impl AsyncRead + Unpin),
        answered: impl Fn(bool),
        one_way: impl FnOnce(),
    ) -> io::Error {
        let mut asks = self.asked.subscribe();
        let (mut answer, since_start, mut one_way) = ([0; 1], Instant::now(), Some(one_way));
        loop {
            let since = *asks.borrow_and_update();
            let overdue = async {
                match since {
                    Some(since) => tokio::time::sleep_until(since + SILENCE_MAX).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                heard = back.read(&mut answer) => match heard {
                    Err(error) => return error,
                    Ok(0) => return io::ErrorKind::UnexpectedEof.into(),
                    Ok(_) => {}
                },
                () = overdue => return io::ErrorKind::TimedOut.into(),
                _ = asks.changed() => continue,
            }
            self.asked.send_replace(None);
            match answer {
                [ALIVE] => answered(true),
                [UNREACHED] => answered(false),
                _ => return frame::invalid("an answer to nothing".to_owned()),
            }
            if answer == [UNREACHED]
                && since_start.elapsed() >= ONE_WAY_MAX
                && let Some(one_way) = one_way.take()
            {
                one_way();
            }
        }
    }
}

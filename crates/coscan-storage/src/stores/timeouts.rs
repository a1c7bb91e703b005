//! Timeouts and retries of stores across the network.

use std::future::Future;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse,
    HttpResponseBody, HttpService, ReqwestConnector,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use tokio::time::{Instant, Sleep};

use super::circuit_breaker::CircuitBreaker;
use super::jitter::Jitter;
use super::throttle::Throttle;

/// Timeouts of a store across the network.
///
/// The defaults suit callers that try four times, as scans do: they then fail within 25 s if a store never answers, and
/// within 30 s if it refuses connections. A store that has been silent for four times `idle` counts as gone: requests
/// fail at once, except for one per `idle` that probes the store. While a store asks to slow down (429, 503), one
/// request every second or two probes it, and all others wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Timeouts {
    /// The longest wait of a read for its next bytes, the first included. In any case a request ends after 30 s.
    /// Default: 6 s.
    pub idle: Duration,
    /// The time from its start within which a request is retried, with growing pauses, if its connection breaks or is
    /// refused, or the store is at fault (5xx). It also bounds the wait for a store that asks to slow down. An attempt
    /// that takes longer, such as `idle`, is not retried. Default: 5 s.
    pub retry: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { idle: Duration::from_secs(6), retry: Duration::from_secs(5) }
    }
}

/// The most retries: more than fit into the time, which is the actual limit.
const RETRIES_MAX: usize = 1_000;

/// The number of `Timeouts::idle` after which a silent store counts as gone.
const IDLE_TIMES_MAX: u32 = 4;

/// The longest pause between two attempts. It begins within `Timeouts::retry` and may end after it.
const PAUSE_MAX: Duration = Duration::from_millis(1_500);

impl Timeouts {
    /// The retries of object_store, for programs that build stores of their own.
    #[must_use]
    pub fn retry_config(self) -> RetryConfig {
        RetryConfig {
            backoff: BackoffConfig { max_backoff: PAUSE_MAX, ..BackoffConfig::default() },
            max_retries: RETRIES_MAX,
            retry_timeout: self.retry,
        }
    }

    /// A connector that connects as object_store does, see [`Self::around`].
    pub(super) fn connector(self) -> impl HttpConnector {
        self.around(ReqwestConnector::default(), Jitter::new(None))
    }

    /// A connector that connects as `connector` does, with these timeouts, a circuit breaker, and pauses for stores
    /// that ask to slow down. It is for programs that build stores of their own.
    pub fn around(self, connector: impl HttpConnector, jitter: Jitter) -> impl HttpConnector {
        Connector { connector, timeouts: self, jitter: Arc::new(jitter) }
    }
}

/// A connector with an idle timeout. object_store has only a timeout for whole requests, which must allow for the
/// slowest download; a dead store would block readers for as long.
#[derive(Debug)]
struct Connector<C> {
    connector: C,
    timeouts: Timeouts,
    jitter: Arc<Jitter>,
}

impl<C: HttpConnector> HttpConnector for Connector<C> {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let client = self.connector.connect(options)?;
        Ok(HttpClient::new(Service::new(client, self.timeouts, Arc::clone(&self.jitter))))
    }
}

#[derive(Debug)]
struct Service {
    client: HttpClient,
    timeouts: Timeouts,
    silence: Arc<CircuitBreaker>,
    throttle: Throttle,
}

impl Service {
    fn new(client: HttpClient, timeouts: Timeouts, jitter: Arc<Jitter>) -> Self {
        let idle = timeouts.idle;
        let silence = Arc::new(CircuitBreaker::new(idle * IDLE_TIMES_MAX, idle));
        Self { client, timeouts, silence, throttle: Throttle::new(jitter) }
    }

    async fn send(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let idle = self.timeouts.idle;
        if let Some(length) = self.silence.is_open() {
            return Err(HttpError::new(HttpErrorKind::Unknown, Gone { length, idle }));
        }
        let asked = Instant::now();
        let answer = tokio::time::timeout(idle, self.client.execute(request)).await;
        let answer = answer.unwrap_or_else(|_| Err(silent(idle)));
        match &answer {
            Ok(_) => self.silence.heard(),
            // This may have been the timeout of the connection.
            Err(error) if error.kind() == HttpErrorKind::Timeout => self.silence.unanswered(asked),
            Err(_) => {}
        }
        let watch = |body| IdleTimeoutBody {
            body,
            idle,
            silence: Arc::clone(&self.silence),
            waiting: None,
        };
        Ok(answer?.map(|body| HttpResponseBody::new(watch(body))))
    }
}

#[async_trait]
impl HttpService for Service {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // During an upload the store is silent.
        if !request.method().is_safe() {
            return self.client.execute(request).await;
        }
        let deadline = Instant::now() + self.timeouts.retry;
        loop {
            // object_store must not retry this request, since it would take no turns.
            let turn = self.throttle.turn(deadline).await;
            let turn = turn.map_err(|error| HttpError::new(HttpErrorKind::Unknown, error))?;
            let answer = self.send(request.clone()).await?;
            let status = answer.status();
            if !matches!(status.as_u16(), 429 | 503) {
                self.throttle.served(&turn);
                return Ok(answer);
            }
            let text = answer.into_body().bytes().await.unwrap_or_default();
            let text = String::from_utf8_lossy(&text);
            self.throttle.refused(&turn, &format!("{status}: {text}"));
        }
    }
}

#[derive(Debug, thiserror::Error)]
#[error("the store sent nothing for {idle:?}")]
struct Silent {
    idle: Duration,
}

fn silent(idle: Duration) -> HttpError {
    HttpError::new(HttpErrorKind::Timeout, Silent { idle })
}

/// The error of a store that is gone. object_store does not retry it.
#[derive(Debug, thiserror::Error)]
#[error("the store has sent nothing for {} s; it is asked again every {idle:?}", length.as_secs())]
struct Gone {
    length: Duration,
    idle: Duration,
}

/// A body with an idle timeout.
struct IdleTimeoutBody {
    body: HttpResponseBody,
    idle: Duration,
    silence: Arc<CircuitBreaker>,
    /// The start and end of the wait for the next bytes; `None`, without a timeout, while no reader polls.
    waiting: Option<(Instant, Pin<Box<Sleep>>)>,
}

impl Body for IdleTimeoutBody {
    type Data = Bytes;
    type Error = HttpError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, HttpError>>> {
        let this = &mut *self;
        if let Poll::Ready(frame) = pin!(&mut this.body).poll_frame(context) {
            this.waiting = None;
            this.silence.heard();
            return Poll::Ready(frame);
        }
        let start = || (Instant::now(), Box::pin(tokio::time::sleep(this.idle)));
        let (since, timer) = this.waiting.get_or_insert_with(start);
        ready!(timer.as_mut().poll(context));
        this.silence.unanswered(*since);
        Poll::Ready(Some(Err(silent(this.idle))))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use object_store::client::HttpRequestBody;

    use super::*;

    /// A service that never answers.
    #[derive(Debug)]
    struct Dead;

    #[async_trait]
    impl HttpService for Dead {
        async fn call(&self, _: HttpRequest) -> Result<HttpResponse, HttpError> {
            std::future::pending().await
        }
    }

    /// The duration of a request to a store, in seconds, and its error.
    async fn ask(store: &HttpClient) -> (u64, String) {
        let asked = Instant::now();
        let answer = store.execute(HttpRequest::new(HttpRequestBody::empty())).await;
        let error = answer.err().map(|error| error.to_string());
        (asked.elapsed().as_secs(), error.unwrap_or_default())
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_store_times_out_four_times_and_is_then_probed_by_one_request_at_a_time() {
        let jitter = Arc::new(Jitter::new(Some(1)));
        let service = Service::new(HttpClient::new(Dead), Timeouts::default(), jitter);
        let store = HttpClient::new(service);
        for _ in 0..4 {
            let (seconds, error) = ask(&store).await;
            assert_eq!(seconds, 6);
            assert!(error.contains("the store sent nothing for 6s"), "{error}");
        }
        let asked = futures::future::join_all((0..10).map(|_| ask(&store))).await;
        let waited: Vec<_> = asked.iter().map(|(seconds, _)| *seconds).collect();
        assert_eq!(waited, [6, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let error = &asked[9].1;
        assert!(error.contains("has sent nothing for 24 s; it is asked again every 6s"), "{error}");
    }
}

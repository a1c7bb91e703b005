//! An S3 server on the loopback interface. The crate `s3s` speaks the protocol and checks signatures. Objects are in
//! memory. Faults are set beforehand.

mod backend;

use std::collections::{BTreeMap, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::Bytes;
use coscan_storage::stores::{StoreOptions, Stores, Timeouts};
use futures::{StreamExt, stream};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use hyper::body::{Frame, Incoming};
use hyper::service::service_fn;
use hyper::{Method, Request, Response};
use hyper_util::rt::TokioIo;
use s3s::auth::SimpleAuth;
use s3s::service::{S3Service, S3ServiceBuilder};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use backend::{Access, Backend, Objects};

/// The bucket that clients with the key may read.
pub const BUCKET: &str = "trips-bucket";
/// The same objects for clients without a key.
const PUBLIC_BUCKET: &str = "public-bucket";
const REGION: &str = "eu-west-1";
/// The name of the key.
pub const KEY_ID: &str = "AKIDFORTHESETESTS";
/// The secret of the key.
pub const SECRET: &str = "a-secret-of-40-characters-for-these-tests";

/// A fault of an answer.
#[derive(Clone, Copy, Debug)]
pub enum Fault {
    /// The answer asks the client to slow down.
    SlowDown,
    /// The answer never comes.
    Silence,
    /// The answer stops after this number of bytes of the body, and the connection is reset.
    Reset(usize),
    /// The answer stops after this number of bytes of the body, and the connection stays.
    Stall(usize),
}

/// A server on the loopback interface, until it is dropped.
pub struct S3Server {
    address: SocketAddr,
    shared: Arc<Shared>,
    /// Ends the server, with all that it still holds back, when this is dropped.
    _tasks: JoinSet<()>,
}

#[derive(Default)]
struct Shared {
    objects: Mutex<Objects>,
    faults: Mutex<Faults>,
    requests: Mutex<Vec<String>>,
}

#[derive(Default)]
struct Faults {
    next: VecDeque<Fault>,
    always: Option<Fault>,
}

impl S3Server {
    /// Starts a server without objects.
    pub async fn start() -> Self {
        Self::start_at("127.0.0.1:0").await
    }

    /// Starts a server without objects at an address.
    pub async fn start_at(address: &str) -> Self {
        let shared = Arc::new(Shared::default());
        let mut builder = S3ServiceBuilder::new(Backend(Arc::clone(&shared)));
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        builder.set_access(Access);
        let service = builder.build();
        let listener = TcpListener::bind(address).await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, service, Arc::clone(&shared)));
        Self { address, shared, _tasks: tasks }
    }

    /// Puts an object, replacing one with the same key.
    pub fn put(&self, key: &str, content: impl Into<Bytes>) {
        lock(&self.shared.objects).put(key, content.into());
    }

    /// Makes the next answers fail with these faults, one after the other.
    pub fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        lock(&self.shared.faults).next.extend(faults);
    }

    /// Makes all answers fail from now on.
    pub fn fail_always(&self, fault: Fault) {
        lock(&self.shared.faults).always = Some(fault);
    }

    /// Makes answers succeed again.
    pub fn serve_again(&self) {
        lock(&self.shared.faults).always = None;
    }

    /// The requests since the last call: method, path with query, range.
    pub fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shared.requests))
    }

    /// The URL of an object for clients that use plain HTTP without a key.
    pub fn http(&self, key: &str) -> String {
        format!("http://{}/{PUBLIC_BUCKET}/{key}", self.address)
    }

    /// Options of stores with its address and the right credentials.
    pub fn options(&self) -> BTreeMap<String, String> {
        let endpoint = format!("http://{}", self.address);
        [
            ("aws.endpoint", endpoint.as_str()),
            ("aws.allow_http", "true"),
            ("aws.region", REGION),
            ("aws.access_key_id", KEY_ID),
            ("aws.secret_access_key", SECRET),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Stores that find this server under `s3://`.
    pub fn stores(&self) -> Stores {
        Stores::new().with_options(StoreOptions::new(self.options()).unwrap())
    }

    /// The same stores with other timeouts.
    pub fn stores_with_timeouts(&self, timeouts: Timeouts) -> Stores {
        self.stores().with_timeouts(timeouts)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap()
}

type Body = UnsyncBoxBody<Bytes, s3s::StdError>;

async fn serve(listener: TcpListener, service: S3Service, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        let (socket, _) = listener.accept().await.unwrap();
        let (service, shared) = (service.clone(), Arc::clone(&shared));
        connections.spawn(async move {
            let answer = service_fn(|request| answer(&service, &shared, request));
            let connection = hyper::server::conn::http1::Builder::new()
                .serve_connection(TokioIo::new(socket), answer);
            // A connection that it breaks off on purpose ends here, too.
            let _ = connection.await;
        });
    }
}

async fn answer(
    service: &S3Service,
    shared: &Shared,
    request: Request<Incoming>,
) -> Result<Response<Body>, Infallible> {
    let range = request.headers().get("range").map_or("", |range| range.to_str().unwrap());
    let record = format!("{} {} {range}", request.method(), request.uri());
    lock(&shared.requests).push(record.trim_end().to_owned());
    let fault = {
        let mut faults = lock(&shared.faults);
        faults.next.pop_front().or(faults.always)
    };
    if let Some(Fault::Silence) = fault {
        std::future::pending::<()>().await;
    }
    if let Some(Fault::SlowDown) = fault {
        let text = "<?xml version=\"1.0\"?><Error><Code>SlowDown</Code>\
                    <Message>Please reduce your request rate.</Message></Error>";
        let body = Full::new(Bytes::from(text)).map_err(Into::into).boxed_unsync();
        return Ok(Response::builder().status(503).body(body).unwrap());
    }
    let is_head = request.method() == Method::HEAD;
    let answer = service.call(request.map(s3s::Body::from)).await.unwrap();
    let (parts, body) = answer.into_parts();
    let body = match fault {
        Some(Fault::Reset(bytes)) if !is_head => broken(body, bytes, Break::Reset).await,
        Some(Fault::Stall(bytes)) if !is_head => broken(body, bytes, Break::Stall).await,
        _ => body.boxed_unsync(),
    };
    Ok(Response::from_parts(parts, body))
}

enum Break {
    Reset,
    Stall,
}

/// The first bytes of a body, and then no more though more were announced.
async fn broken(body: s3s::Body, bytes: usize, how: Break) -> Body {
    let whole = BodyExt::collect(body).await.unwrap().to_bytes();
    assert!(bytes < whole.len(), "breaks within {} bytes", whole.len());
    let first = stream::iter([Ok(Frame::data(whole.slice(..bytes)))]);
    let then = stream::once(async move {
        match how {
            Break::Stall => std::future::pending().await,
            // The first bytes leave before.
            Break::Reset => tokio::task::yield_now().await,
        }
        Err("the connection is reset on purpose".into())
    });
    BodyExt::boxed_unsync(StreamBody::new(first.chain(then)))
}

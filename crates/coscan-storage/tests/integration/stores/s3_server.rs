//! An S3 server on the loopback. The protocol, with its signatures, is s3s'. Objects are in memory. Faults are set
//! beforehand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::SystemTime;

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
use s3s::dto::*;
use s3s::service::{S3Service, S3ServiceBuilder};
use s3s::{S3, S3Request, S3Response, S3Result, s3_error};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

pub(crate) const BUCKET: &str = "trips-bucket";
pub(crate) const KEY_ID: &str = "AKIDFORTHESETESTS";
pub(crate) const SECRET: &str = "a-secret-of-40-characters-for-these-tests";

/// A fault of an answer.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Fault {
    /// The answer asks the client to slow down.
    SlowDown,
    /// The answer never comes.
    Silence,
    /// The answer stops after this number of bytes of the body, and the connection is reset.
    Reset(usize),
    /// The answer stops after this number of bytes of the body, and the connection stays.
    Stall(usize),
}

pub(crate) struct S3Server {
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
struct Objects {
    by_key: BTreeMap<String, StoredObject>,
    versions: u64,
}

#[derive(Clone)]
struct StoredObject {
    content: Bytes,
    e_tag: ETag,
    modified: Timestamp,
}

#[derive(Default)]
struct Faults {
    next: VecDeque<Fault>,
    always: Option<Fault>,
}

impl S3Server {
    pub(crate) async fn start() -> Self {
        let shared = Arc::new(Shared::default());
        let mut builder = S3ServiceBuilder::new(Backend(Arc::clone(&shared)));
        builder.set_auth(SimpleAuth::from_single(KEY_ID, SECRET));
        let service = builder.build();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let mut tasks = JoinSet::new();
        tasks.spawn(serve(listener, service, Arc::clone(&shared)));
        Self { address, shared, _tasks: tasks }
    }

    /// Puts an object, replacing one with the same key.
    pub(crate) fn put(&self, key: &str, content: impl Into<Bytes>) {
        let mut objects = lock(&self.shared.objects);
        objects.versions += 1;
        let object = StoredObject {
            content: content.into(),
            e_tag: ETag::Strong(format!("version-{}", objects.versions)),
            modified: Timestamp::from(SystemTime::now()),
        };
        objects.by_key.insert(key.to_owned(), object);
    }

    /// Makes the next answers fail with these faults, one after the other.
    pub(crate) fn fail_next(&self, faults: impl IntoIterator<Item = Fault>) {
        lock(&self.shared.faults).next.extend(faults);
    }

    /// Makes all answers fail from now on.
    pub(crate) fn fail_always(&self, fault: Fault) {
        lock(&self.shared.faults).always = Some(fault);
    }

    /// Makes answers succeed again.
    pub(crate) fn serve_again(&self) {
        lock(&self.shared.faults).always = None;
    }

    /// The requests since the last call: method, path with query, range.
    pub(crate) fn take_requests(&self) -> Vec<String> {
        std::mem::take(&mut lock(&self.shared.requests))
    }

    /// Options with its address and the right credentials.
    pub(crate) fn options(&self) -> BTreeMap<String, String> {
        let endpoint = format!("http://{}", self.address);
        [
            ("aws.endpoint", endpoint.as_str()),
            ("aws.allow_http", "true"),
            ("aws.region", "eu-west-1"),
            ("aws.access_key_id", KEY_ID),
            ("aws.secret_access_key", SECRET),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into()
    }

    /// Stores that find this server under `s3://`.
    pub(crate) fn stores(&self) -> Stores {
        Stores::new().with_options(StoreOptions::new(self.options()).unwrap())
    }

    pub(crate) fn stores_with_timeouts(&self, timeouts: Timeouts) -> Stores {
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

/// The operations that reading needs.
struct Backend(Arc<Shared>);

impl Backend {
    fn find(
        &self,
        bucket: &str,
        key: &str,
        if_match: Option<&ETagCondition>,
        if_none_match: Option<&ETagCondition>,
    ) -> S3Result<StoredObject> {
        check_bucket(bucket)?;
        let objects = lock(&self.0.objects);
        let object = objects.by_key.get(key).ok_or_else(|| s3_error!(NoSuchKey))?;
        let is = |condition: &ETagCondition| match condition {
            ETagCondition::ETag(e_tag) => e_tag.strong_cmp(&object.e_tag),
            ETagCondition::Any => true,
        };
        if if_match.is_some_and(|condition| !is(condition)) {
            return Err(s3_error!(PreconditionFailed));
        }
        if if_none_match.is_some_and(is) {
            return Err(s3_error!(NotModified));
        }
        Ok(object.clone())
    }
}

fn check_bucket(bucket: &str) -> S3Result<()> {
    if bucket == BUCKET { Ok(()) } else { Err(s3_error!(NoSuchBucket)) }
}

#[async_trait::async_trait]
impl S3 for Backend {
    async fn get_object(
        &self,
        request: S3Request<GetObjectInput>,
    ) -> S3Result<S3Response<GetObjectOutput>> {
        let input = request.input;
        let object = self.find(
            &input.bucket,
            &input.key,
            input.if_match.as_ref(),
            input.if_none_match.as_ref(),
        )?;
        let all = object.content.len() as u64;
        let range = match input.range {
            Some(range) => range.check(all)?,
            None => 0..all,
        };
        let content_range =
            input.range.map(|_| format!("bytes {}-{}/{all}", range.start, range.end - 1));
        let content = object.content.slice(range.start as usize..range.end as usize);
        Ok(S3Response::new(GetObjectOutput {
            content_length: Some(content.len() as i64),
            content_range,
            body: Some(StreamingBlob::wrap(stream::iter([Ok::<_, Infallible>(content)]))),
            e_tag: Some(object.e_tag),
            last_modified: Some(object.modified),
            ..GetObjectOutput::default()
        }))
    }

    async fn head_object(
        &self,
        request: S3Request<HeadObjectInput>,
    ) -> S3Result<S3Response<HeadObjectOutput>> {
        let input = request.input;
        let object = self.find(
            &input.bucket,
            &input.key,
            input.if_match.as_ref(),
            input.if_none_match.as_ref(),
        )?;
        Ok(S3Response::new(HeadObjectOutput {
            content_length: Some(object.content.len() as i64),
            e_tag: Some(object.e_tag),
            last_modified: Some(object.modified),
            ..HeadObjectOutput::default()
        }))
    }

    async fn list_objects_v2(
        &self,
        request: S3Request<ListObjectsV2Input>,
    ) -> S3Result<S3Response<ListObjectsV2Output>> {
        let input = request.input;
        check_bucket(&input.bucket)?;
        let prefix = input.prefix.clone().unwrap_or_default();
        let after = input.continuation_token.as_ref().or(input.start_after.as_ref());
        let keys_max = input.max_keys.unwrap_or(1000).clamp(1, 1000) as usize;
        let objects = lock(&self.0.objects);
        let mut contents = Vec::new();
        let mut prefixes = BTreeSet::new();
        let mut last = None;
        let mut is_truncated = false;
        let start = after.filter(|after| **after > prefix).unwrap_or(&prefix).clone();
        for (key, object) in objects.by_key.range(start..) {
            let Some(rest) = key.strip_prefix(&prefix) else { break };
            let cut = input.delimiter.as_ref().and_then(|delimiter| rest.find(delimiter.as_str()));
            let common = cut.map(|cut| key[..=prefix.len() + cut].to_owned());
            let name = common.as_ref().unwrap_or(key);
            let is_known = common.as_ref().is_some_and(|common| prefixes.contains(common));
            if is_known || after.is_some_and(|after| name <= after) {
                continue;
            }
            if contents.len() + prefixes.len() == keys_max {
                is_truncated = true;
                break;
            }
            last = Some(name.clone());
            match common {
                Some(common) => _ = prefixes.insert(common),
                None => contents.push(Object {
                    key: Some(key.clone()),
                    size: Some(object.content.len() as i64),
                    e_tag: Some(object.e_tag.clone()),
                    last_modified: Some(object.modified.clone()),
                    ..Object::default()
                }),
            }
        }
        let prefixes = prefixes.into_iter().map(|prefix| CommonPrefix { prefix: Some(prefix) });
        Ok(S3Response::new(ListObjectsV2Output {
            name: Some(input.bucket),
            prefix: Some(prefix),
            key_count: Some((contents.len() + prefixes.len()) as i32),
            max_keys: Some(keys_max as i32),
            common_prefixes: Some(prefixes.collect()),
            contents: Some(contents),
            is_truncated: Some(is_truncated),
            next_continuation_token: last.filter(|_| is_truncated),
            continuation_token: input.continuation_token,
            ..ListObjectsV2Output::default()
        }))
    }
}

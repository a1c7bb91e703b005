//! The client of arrow-flight, with helpers of all tests.

use std::sync::Arc;

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow_flight::FlightInfo;
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::sql::client::FlightSqlServiceClient;
use coscan_server::config::{Config, Listen};
use futures::{StreamExt, TryStreamExt};
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use crate::support::server::{Running, start_as};
use crate::support::{PASSWORD, in_time};

/// A query that takes hours, and returns rows at once.
pub(crate) const LONG: &str = "SELECT a.id, a.word FROM numbers a, numbers b, numbers c";

pub(crate) type Client = FlightSqlServiceClient<Channel>;

pub(crate) async fn start() -> Running {
    start_flight(|_| {}).await
}

pub(crate) async fn start_flight(change: impl FnOnce(&mut Config)) -> Running {
    let at = Some("127.0.0.1:0".parse().unwrap());
    start_as(|config, _| {
        config.listen = Listen { flight: at, ..config.listen };
        change(config);
    })
    .await
}

/// A client that is not logged in.
pub(crate) async fn stranger(running: &Running) -> Client {
    let uri = format!("http://{}", running.server.flight.unwrap());
    FlightSqlServiceClient::new(Endpoint::from_shared(uri).unwrap().connect().await.unwrap())
}

pub(crate) async fn login(running: &Running, user: &str) -> Client {
    let mut client = stranger(running).await;
    client.handshake(user, PASSWORD).await.unwrap();
    client
}

/// A server, and a client of Ann.
pub(crate) async fn start_with_ann() -> (Running, Client) {
    let running = start().await;
    let client = login(&running, "ann").await;
    (running, client)
}

pub(crate) async fn fetch(client: &mut Client, info: &FlightInfo) -> FlightRecordBatchStream {
    client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap()
}

pub(crate) async fn all(client: &mut Client, info: &FlightInfo) -> RecordBatch {
    let mut stream = fetch(client, info).await;
    let batches: Vec<_> = stream.by_ref().try_collect().await.unwrap();
    let schema = Arc::new(info.clone().try_decode_schema().unwrap());
    // Clients compare the announced schema with the received one.
    assert_eq!(stream.schema(), Some(&schema));
    concat_batches(&schema, &batches).unwrap()
}

pub(crate) async fn query(client: &mut Client, sql: &str) -> RecordBatch {
    let info = client.execute(sql.to_owned(), None).await.unwrap();
    in_time(all(client, &info)).await
}

pub(crate) fn code(error: &FlightError) -> Code {
    match error {
        FlightError::Tonic(status) => status.code(),
        // This is the text that the client keeps of a refused login.
        error if error.to_string().contains(Code::Unauthenticated.description()) => {
            Code::Unauthenticated
        }
        other => panic!("{other}"),
    }
}

pub(crate) async fn error(client: &mut Client, sql: &str) -> FlightError {
    match client.execute(sql.to_owned(), None).await {
        Err(error) => error,
        Ok(info) => {
            client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map(|_| ()).unwrap_err()
        }
    }
}

/// Completes once no query runs or waits.
pub(crate) async fn drained(running: &Running) {
    in_time(running.server.sql_service().queries().drained()).await;
}

/// One row of numbers and a text.
pub(crate) fn row(numbers: &[i64], text: &str) -> RecordBatch {
    let numbers = numbers.iter().map(|n| Arc::new(Int64Array::from(vec![*n])) as ArrayRef);
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let columns = numbers.chain([text]).enumerate();
    RecordBatch::try_from_iter(columns.map(|(index, column)| (format!("${}", index + 1), column)))
        .unwrap()
}

/// A request with the token of a client.
pub(crate) fn request<T>(client: &Client, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let token = format!("Bearer {}", client.token().unwrap());
    request.metadata_mut().insert("authorization", token.parse().unwrap());
    request
}

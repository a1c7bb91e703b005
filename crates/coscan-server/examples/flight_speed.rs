//! Measures how fast Flight SQL streams a table, compared with arrow-flight's own stream of the same batches from
//! memory, and with the query alone.
//!
//! ```sh
//! cargo run --release -p coscan-server --example flight_speed -- 10000000
//! ```
#![allow(clippy::unwrap_used, reason = "an example")]

use std::error::Error;
use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arrow::array::{Date32Array, Float64Array, Int64Array, RecordBatch, StringArray};
use arrow_flight::encode::FlightDataEncoderBuilder;
use arrow_flight::flight_service_server::{FlightService, FlightServiceServer};
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::{
    Action, ActionType, Criteria, Empty, FlightData, FlightDescriptor, FlightInfo,
    HandshakeRequest, HandshakeResponse, PollInfo, PutResult, Result as ActionResult, SchemaResult,
    Ticket,
};
use coscan_server::Server;
use coscan_server::config::Config;
use coscan_server::sql::{Proof, Sql};
use datafusion::common::ParamValues;
use futures::{Stream, StreamExt, TryStreamExt, stream};
use parquet::arrow::ArrowWriter;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status, Streaming};

const SQL: &str = "SELECT * FROM t";

/// The number of measurements, of which the fastest counts.
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let rows = std::env::args().nth(1).map_or(Ok(10_000_000), |rows| rows.parse())?;
    let directory = tempfile::tempdir()?;
    let path = directory.path().join("t.parquet");
    write(&path, rows)?;
    let mut config = Config { insecure: true, ..Config::default() };
    config.tables.insert("t".to_owned(), path.display().to_string().into());
    config.listen.flight = Some("127.0.0.1:0".parse()?);
    let server = Server::start(&config).await?;

    let service = server.sql_service();
    let session = service.login("me", Proof::None).await?;
    let planned = service.plan(&session, Sql::Text(SQL)).await?;
    let run = || service.run(&session, planned.clone(), ParamValues::List(Vec::new()));
    let batches: Vec<RecordBatch> = run().await?.try_collect().await?;
    let mut alone = Duration::MAX;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        run().await?.try_for_each(|_| async { Ok(()) }).await?;
        alone = alone.min(start.elapsed());
    }

    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    let own = listener.local_addr()?;
    let incoming = tonic::transport::server::TcpIncoming::from(listener).with_nodelay(Some(true));
    let service = FlightServiceServer::new(Memory(batches));
    let serving =
        tonic::transport::Server::builder().add_service(service).serve_with_incoming(incoming);
    tokio::spawn(serving);
    let (mut ours, mut theirs) = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        theirs = theirs.min(fetch(connect(own).await?, Ticket::new(""), rows).await?);
        let mut client = connect(server.flight.ok_or("no Flight SQL")?).await?;
        let info = client.execute(SQL.to_owned(), None).await?;
        let ticket = info.endpoint[0].ticket.clone().ok_or("no ticket")?;
        ours = ours.min(fetch(client, ticket, rows).await?);
    }
    let speed = |time: Duration| rows as f64 / time.as_secs_f64() / 1e6;
    println!("the query alone:                  {:6.1} million rows/s", speed(alone));
    println!("arrow-flight, batches in memory:  {:6.1} million rows/s", speed(theirs));
    println!("Flight SQL, with the query:       {:6.1} million rows/s", speed(ours));
    println!("ratio to arrow-flight:            {:6.2}", speed(ours) / speed(theirs));
    Ok(())
}

/// Writes numbers, days and texts.
fn write(path: &Path, rows: i64) -> Result<(), Box<dyn Error>> {
    let batch = |start: i64, end: i64| {
        let ids = Int64Array::from_iter_values(start..end);
        let values = Float64Array::from_iter_values((start..end).map(|id| id as f64 * 0.37));
        let days = Date32Array::from_iter_values((start..end).map(|id| (id % 2500) as i32));
        let texts = (start..end).map(|id| format!("a text of the row {}", id % 100_000));
        let texts = StringArray::from_iter_values(texts);
        RecordBatch::try_from_iter([
            ("id", Arc::new(ids) as _),
            ("value", Arc::new(values) as _),
            ("day", Arc::new(days) as _),
            ("text", Arc::new(texts) as _),
        ])
    };
    let mut writer = ArrowWriter::try_new(File::create(path)?, batch(0, 0)?.schema(), None)?;
    for start in (0..rows).step_by(100_000) {
        writer.write(&batch(start, rows.min(start + 100_000))?)?;
    }
    writer.close()?;
    Ok(())
}

async fn connect(at: SocketAddr) -> Result<FlightSqlServiceClient<Channel>, Box<dyn Error>> {
    let endpoint = Endpoint::from_shared(format!("http://{at}"))?
        .initial_stream_window_size(8 << 20)
        .initial_connection_window_size(16 << 20);
    Ok(FlightSqlServiceClient::new(endpoint.connect().await?))
}

async fn fetch(
    mut client: FlightSqlServiceClient<Channel>,
    ticket: Ticket,
    expected: i64,
) -> Result<Duration, Box<dyn Error>> {
    let start = Instant::now();
    let mut batches = client.do_get(ticket).await?;
    let mut rows = 0;
    while let Some(batch) = batches.try_next().await? {
        rows += batch.num_rows();
    }
    assert_eq!(i64::try_from(rows)?, expected);
    Ok(start.elapsed())
}

/// Serves these batches, as arrow-flight's examples do.
struct Memory(Vec<RecordBatch>);

type BoxedStream<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send + 'static>>;

fn no<T>() -> Result<T, Status> {
    Err(Status::unimplemented("only DoGet is served"))
}

#[tonic::async_trait]
impl FlightService for Memory {
    type HandshakeStream = BoxedStream<HandshakeResponse>;
    type ListFlightsStream = BoxedStream<FlightInfo>;
    type DoGetStream = BoxedStream<FlightData>;
    type DoPutStream = BoxedStream<PutResult>;
    type DoActionStream = BoxedStream<ActionResult>;
    type ListActionsStream = BoxedStream<ActionType>;
    type DoExchangeStream = BoxedStream<FlightData>;

    async fn do_get(&self, _: Request<Ticket>) -> Result<Response<Self::DoGetStream>, Status> {
        let batches = stream::iter(self.0.clone()).map(Ok);
        let encoded = FlightDataEncoderBuilder::new().build(batches);
        Ok(Response::new(Box::pin(encoded.map(|data| data.map_err(Status::from)))))
    }

    async fn handshake(
        &self,
        _: Request<Streaming<HandshakeRequest>>,
    ) -> Result<Response<Self::HandshakeStream>, Status> {
        no()
    }

    async fn list_flights(
        &self,
        _: Request<Criteria>,
    ) -> Result<Response<Self::ListFlightsStream>, Status> {
        no()
    }

    async fn get_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<FlightInfo>, Status> {
        no()
    }

    async fn poll_flight_info(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<PollInfo>, Status> {
        no()
    }

    async fn get_schema(
        &self,
        _: Request<FlightDescriptor>,
    ) -> Result<Response<SchemaResult>, Status> {
        no()
    }

    async fn do_put(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoPutStream>, Status> {
        no()
    }

    async fn do_action(
        &self,
        _: Request<Action>,
    ) -> Result<Response<Self::DoActionStream>, Status> {
        no()
    }

    async fn list_actions(
        &self,
        _: Request<Empty>,
    ) -> Result<Response<Self::ListActionsStream>, Status> {
        no()
    }

    async fn do_exchange(
        &self,
        _: Request<Streaming<FlightData>>,
    ) -> Result<Response<Self::DoExchangeStream>, Status> {
        no()
    }
}

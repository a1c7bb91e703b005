//! Arrow Flight SQL with the client of arrow-flight.
#![allow(clippy::unwrap_used)]

mod support;

use std::sync::Arc;
use std::time::Duration;

use arrow::array::{Array, ArrayRef, AsArray, Int64Array, RecordBatch, StringArray};
use arrow::compute::concat_batches;
use arrow::datatypes::{DataType, Int64Type};
use arrow_flight::decode::FlightRecordBatchStream;
use arrow_flight::error::FlightError;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any,
    CommandGetDbSchemas, CommandGetPrimaryKeys, CommandGetTables, CommandGetXdbcTypeInfo,
    CommandPreparedStatementQuery, ProstMessageExt, SqlInfo,
};
use arrow_flight::{
    Action, CancelFlightInfoRequest, CancelFlightInfoResult, CancelStatus, FlightInfo,
};
use coscan_server::config::{Config, Listen};
use coscan_server::queries::QueryState;
use futures::{StreamExt, TryStreamExt};
use hyper_util::rt::TokioIo;
use prost::Message;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use support::server::{Running, certificate, start_as};
use support::{PASSWORD, ROWS};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

/// Nothing here takes so long unless it hangs.
const HANG: Duration = Duration::from_secs(120);

/// Takes hours, and gives rows at once.
const LONG: &str = "SELECT a.id, a.word FROM numbers a, numbers b, numbers c";

type Client = FlightSqlServiceClient<Channel>;

async fn start() -> Running {
    start_flight(|_| {}).await
}

async fn start_flight(change: impl FnOnce(&mut Config)) -> Running {
    let at = Some("127.0.0.1:0".parse().unwrap());
    start_as(|config, _| {
        config.listen = Listen { flight: at, ..config.listen };
        change(config);
    })
    .await
}

/// A client that is not logged in.
async fn stranger(running: &Running) -> Client {
    let uri = format!("http://{}", running.server.flight.unwrap());
    FlightSqlServiceClient::new(Endpoint::from_shared(uri).unwrap().connect().await.unwrap())
}

async fn login(running: &Running, user: &str) -> Client {
    let mut client = stranger(running).await;
    client.handshake(user, PASSWORD).await.unwrap();
    client
}

async fn fetch(client: &mut Client, info: &FlightInfo) -> FlightRecordBatchStream {
    client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.unwrap()
}

async fn all(client: &mut Client, info: &FlightInfo) -> RecordBatch {
    let mut stream = fetch(client, info).await;
    let batches: Vec<_> = stream.by_ref().try_collect().await.unwrap();
    let schema = Arc::new(info.clone().try_decode_schema().unwrap());
    // Clients compare what was told with what comes.
    assert_eq!(stream.schema(), Some(&schema));
    concat_batches(&schema, &batches).unwrap()
}

async fn query(client: &mut Client, sql: &str) -> RecordBatch {
    let info = client.execute(sql.to_owned(), None).await.unwrap();
    timeout(HANG, all(client, &info)).await.unwrap()
}

fn code(error: &FlightError) -> Code {
    match error {
        FlightError::Tonic(status) => status.code(),
        // What the client keeps of a login that is refused.
        error if error.to_string().contains(Code::Unauthenticated.description()) => {
            Code::Unauthenticated
        }
        other => panic!("{other}"),
    }
}

async fn error(client: &mut Client, sql: &str) -> FlightError {
    match client.execute(sql.to_owned(), None).await {
        Err(error) => error,
        Ok(info) => {
            client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map(|_| ()).unwrap_err()
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_statement_returns_its_rows_with_types_that_clients_read() {
    let running = start().await;
    let mut client = login(&running, "ann").await;
    let rows = query(&mut client, "SELECT id, word FROM numbers ORDER BY id").await;
    let ids = rows.column(0).as_primitive::<Int64Type>();
    assert!(ids.values().iter().copied().eq(0..ROWS));
    assert_eq!(rows.schema().field(1).data_type(), &DataType::Utf8);
    assert_eq!(rows.column(1).as_string::<i32>().value(9), "word 2");
    let sql = "SELECT DATE '2024-02-29' AS d, CAST(1.5 AS DECIMAL(10, 2)) AS m, TIMESTAMP '2024-02-29T12:00:00' AS t, \
               CAST(NULL AS BIGINT) AS n, ARRAY['a long text, longer than a view has room for', NULL] AS l";
    let rows = query(&mut client, sql).await;
    assert!(rows.column(3).is_null(0));
    let list = rows.column(4).as_list::<i32>().value(0);
    assert_eq!(list.as_string::<i32>().value(0).len(), 44);
    let none = query(&mut client, "SELECT id, word FROM numbers WHERE id < 0").await;
    assert_eq!((none.num_rows(), none.num_columns()), (0, 2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn settings_last_as_long_as_a_login() {
    let running = start().await;
    let mut client = login(&running, "ann").await;
    // Clients do not always fetch what has no rows, or fetch it late.
    let info = client.execute("SET statement_timeout = '1s'".to_owned(), None).await.unwrap();
    client.execute("SET statement_timeout = '7s'".to_owned(), None).await.unwrap();
    assert_eq!(all(&mut client, &info).await.num_columns(), 0);
    assert_eq!(
        client.execute_update("SET coscan.memory_limit = '1MB'".to_owned(), None).await.unwrap(),
        0
    );
    let shown = query(&mut client, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "7000ms");
    let shown = query(&mut client, "SHOW coscan.memory_limit").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "1000000");
    let shown = query(&mut login(&running, "ann").await, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "0");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn prepared_statements_have_parameters_of_all_sorts() {
    let running = start().await;
    let mut client = login(&running, "ann").await;
    let sql = "SELECT id, word FROM numbers WHERE id BETWEEN $1 AND $2 AND word = $3 ORDER BY id";
    let mut statement = client.prepare(sql.to_owned(), None).await.unwrap();
    assert_eq!(statement.dataset_schema().unwrap().fields().len(), 2);
    let types: Vec<_> = statement
        .parameter_schema()
        .unwrap()
        .fields()
        .iter()
        .map(|f| f.data_type().clone())
        .collect();
    assert_eq!(types, [DataType::Int64, DataType::Int64, DataType::Utf8]);
    for first in [0_i64, 7, 70] {
        statement.set_parameters(row(&[first, first + 14], "word 3")).unwrap();
        let info = statement.execute().await.unwrap();
        let rows = all(&mut client, &info).await;
        assert_eq!(rows.column(0).as_primitive::<Int64Type>().values(), &[first + 3, first + 10]);
    }
    // A parameter whose type nothing tells takes that of its value.
    let mut free = client.prepare("SELECT $1 AS x".to_owned(), None).await.unwrap();
    let value: ArrayRef = Arc::new(Int64Array::from(vec![42]));
    free.set_parameters(RecordBatch::try_from_iter([("x", value)]).unwrap()).unwrap();
    let info = free.execute().await.unwrap();
    assert_eq!(all(&mut client, &info).await.column(0).as_primitive::<Int64Type>().value(0), 42);
    free.close().await.unwrap();
    // Two rows, too few values, values of other types.
    let two = concat_batches(&row(&[1, 2], "a").schema(), [&row(&[1, 2], "a"), &row(&[3, 4], "b")]);
    for (wrong, expected) in [
        (two.unwrap(), Code::Unimplemented),
        (row(&[1], "word 3"), Code::InvalidArgument),
        (row(&[1, 2, 3], "word 3"), Code::InvalidArgument),
    ] {
        statement.set_parameters(wrong).unwrap();
        assert_eq!(code(&statement.execute().await.unwrap_err()), expected);
    }
    statement.close().await.unwrap();
    assert_eq!(code(&error(&mut client, sql).await), Code::InvalidArgument);
}

/// One row of numbers and a text.
fn row(numbers: &[i64], text: &str) -> RecordBatch {
    let numbers = numbers.iter().map(|n| Arc::new(Int64Array::from(vec![*n])) as ArrayRef);
    let text: ArrayRef = Arc::new(StringArray::from(vec![text]));
    let columns = numbers.chain([text]).enumerate();
    RecordBatch::try_from_iter(columns.map(|(index, column)| (format!("${}", index + 1), column)))
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn metadata_tells_what_a_user_was_granted_and_nothing_else() {
    let running = start().await;
    let (mut ann, mut bob) = (login(&running, "ann").await, login(&running, "bob").await);
    let info = ann.get_catalogs().await.unwrap();
    assert_eq!(strings(&all(&mut ann, &info).await, 0), ["coscan"]);
    let schemas =
        CommandGetDbSchemas { catalog: None, db_schema_filter_pattern: Some("pu%".to_owned()) };
    let info = ann.get_db_schemas(schemas).await.unwrap();
    assert_eq!(strings(&all(&mut ann, &info).await, 1), ["public"]);
    let tables = |types: &[&str], include_schema| CommandGetTables {
        catalog: Some("coscan".to_owned()),
        db_schema_filter_pattern: None,
        table_name_filter_pattern: Some("%s".to_owned()),
        table_types: types.iter().map(|name| (*name).to_owned()).collect(),
        include_schema,
    };
    let info = ann.get_tables(tables(&["TABLE"], false)).await.unwrap();
    assert_eq!(strings(&all(&mut ann, &info).await, 2), ["numbers"]);
    let info = bob.get_tables(tables(&["TABLE"], true)).await.unwrap();
    let rows = all(&mut bob, &info).await;
    assert_eq!(strings(&rows, 2), ["numbers", "secrets"]);
    let schema = rows.column(4).as_binary::<i32>().value(0);
    let schema = arrow_flight::IpcMessage(schema.to_vec().into());
    let schema = arrow::datatypes::Schema::try_from(schema).unwrap();
    assert_eq!(schema.field_with_name("word").unwrap().data_type(), &DataType::Utf8);
    let info = ann.get_tables(tables(&["SYSTEM TABLE"], true)).await.unwrap();
    assert!(strings(&all(&mut ann, &info).await, 2).contains(&"queries".to_owned()));
    let info = ann.get_table_types().await.unwrap();
    assert_eq!(strings(&all(&mut ann, &info).await, 0), ["SYSTEM TABLE", "TABLE"]);
    let info = ann.get_sql_info(vec![SqlInfo::FlightSqlServerReadOnly]).await.unwrap();
    assert_eq!(all(&mut ann, &info).await.num_rows(), 1);
    let info = ann.get_xdbc_type_info(CommandGetXdbcTypeInfo { data_type: None }).await.unwrap();
    assert!(strings(&all(&mut ann, &info).await, 0).contains(&"BIGINT".to_owned()));
    let keys =
        CommandGetPrimaryKeys { catalog: None, db_schema: None, table: "numbers".to_owned() };
    let info = ann.get_primary_keys(keys).await.unwrap();
    let rows = all(&mut ann, &info).await;
    assert_eq!((rows.num_rows(), rows.num_columns()), (0, 6));
}

fn strings(rows: &RecordBatch, column: usize) -> Vec<String> {
    rows.column(column).as_string::<i32>().iter().flatten().map(str::to_owned).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn calls_need_a_login_that_is_right_and_has_not_expired() {
    let running = start().await;
    let mut client = stranger(&running).await;
    assert_eq!(code(&error(&mut client, "SELECT 1").await), Code::Unauthenticated);
    for (user, password) in [("ann", "wrong"), ("nobody", PASSWORD), ("", "")] {
        let error = client.handshake(user, password).await.unwrap_err();
        assert_eq!(code(&error), Code::Unauthenticated, "{user}");
    }
    client.set_token("c29tZXRoaW5n".to_owned());
    assert_eq!(code(&error(&mut client, "SELECT 1").await), Code::Unauthenticated);
    assert!(client.get_catalogs().await.is_err());
    let mut ann = login(&running, "ann").await;
    query(&mut ann, "SELECT 1").await;
    let users = running.tables.directory.path().join("users.toml");
    let without_ann = std::fs::read_to_string(&users).unwrap().replace("ann", "anna");
    std::fs::write(&users, without_ann).unwrap();
    running.server.engine().users().reload().unwrap();
    assert_eq!(code(&error(&mut ann, "SELECT 1").await), Code::Unauthenticated);
    query(&mut login(&running, "bob").await, "SELECT 1").await;

    let expiring =
        start_flight(|config| config.limits.token_lifetime = Duration::from_nanos(1)).await;
    let mut client = login(&expiring, "ann").await;
    assert_eq!(code(&error(&mut client, "SELECT 1").await), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tickets_end_with_what_their_user_was_granted() {
    let running = start().await;
    let mut root = login(&running, "root").await;
    let info = root.execute("SELECT count(*) FROM system.queries".to_owned(), None).await.unwrap();
    all(&mut root, &info).await;
    let users = running.tables.directory.path().join("users.toml");
    let without_admin =
        std::fs::read_to_string(&users).unwrap().replace("admin = true", "admin = false");
    std::fs::write(&users, without_admin).unwrap();
    running.server.engine().users().reload().unwrap();
    let mut root = login(&running, "root").await;
    let refused = root.do_get(info.endpoint[0].ticket.clone().unwrap()).await.err().unwrap();
    assert!(refused.to_string().contains("the ticket is unknown"), "{refused}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_logins_are_slowed_down() {
    let running = start().await;
    let mut client = stranger(&running).await;
    let mut is_refused = async |password| {
        let refused = client.handshake("ann", password).await.err();
        refused.is_some_and(|error| error.to_string().contains("too many logins"))
    };
    // Several attempts, since the pause may be over before the right password comes.
    for _ in 0..100 {
        if is_refused("wrong").await && is_refused(PASSWORD).await {
            return;
        }
    }
    panic!("wrong passwords have no effect on later logins");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_connection_over_which_nobody_logs_in_ends() {
    let running = start_flight(|config| config.limits.login_max = Duration::from_secs(3)).await;
    let at = running.server.flight.unwrap();
    let mut client = login(&running, "ann").await;
    let mut silent = TcpStream::connect(at).await.unwrap();
    timeout(HANG, silent.read_to_end(&mut Vec::new())).await.unwrap().ok();
    // It is older than the one that has ended.
    query(&mut client, "SELECT 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn errors_have_the_codes_of_grpc() {
    let running = start().await;
    let mut client = login(&running, "ann").await;
    for (sql, expected) in [
        ("SELEC 1", Code::InvalidArgument),
        ("SELECT nothing FROM numbers", Code::InvalidArgument),
        ("SELECT * FROM secrets", Code::NotFound),
        ("SET coscan.weight = 99", Code::InvalidArgument),
        ("DROP TABLE numbers", Code::PermissionDenied),
        ("SELECT 1; SELECT 2", Code::InvalidArgument),
        ("SELECT $1::int", Code::InvalidArgument),
    ] {
        assert_eq!(code(&error(&mut client, sql).await), expected, "{sql}");
    }
    // An error that comes with the rows.
    let info =
        client.execute("SELECT 1 / (id - 20000) FROM numbers".to_owned(), None).await.unwrap();
    let failed = match client.do_get(info.endpoint[0].ticket.clone().unwrap()).await {
        Ok(rows) => rows.try_collect::<Vec<_>>().await.unwrap_err().to_string(),
        Err(error) => error.to_string(),
    };
    assert!(failed.to_lowercase().contains("divide by zero"), "{failed}");
    // Tickets are their users' only.
    let mut bob = login(&running, "bob").await;
    let info = bob.execute("SELECT * FROM secrets".to_owned(), None).await.unwrap();
    let refused =
        client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map(|_| ()).unwrap_err();
    assert_eq!(code(&refused), Code::NotFound);
    assert_eq!(all(&mut bob, &info).await.num_rows() as i64, ROWS);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_not_served_says_so() {
    let running = start().await;
    let mut client = login(&running, "ann").await;
    let begin = client.begin_transaction().await.unwrap_err();
    assert_eq!(code(&begin), Code::Unimplemented);
    assert!(begin.to_string().contains("no transactions"), "{begin}");
    let update = client.execute_update("SELECT 1".to_owned(), None).await.unwrap_err();
    assert_eq!(code(&update), Code::Unimplemented);
    let insert =
        client.execute_update("INSERT INTO numbers VALUES (1, 'a')".to_owned(), None).await;
    assert_eq!(code(&insert.unwrap_err()), Code::PermissionDenied);
    let in_transaction = client.execute("SELECT 1".to_owned(), Some("t".into())).await.unwrap_err();
    assert_eq!(code(&in_transaction), Code::Unimplemented);
    let other =
        client.do_action(request(&client, Action::new("Dance", ""))).await.map(|_| ()).unwrap_err();
    assert_eq!(code(&other), Code::Unimplemented);
}

/// A request with the token of a client.
fn request<T>(client: &Client, message: T) -> tonic::Request<T> {
    let mut request = tonic::Request::new(message);
    let token = format!("Bearer {}", client.token().unwrap());
    request.metadata_mut().insert("authorization", token.parse().unwrap());
    request
}

async fn cancel(client: &mut Client, info: &FlightInfo) -> CancelStatus {
    let body = CancelFlightInfoRequest::new(info.clone()).encode_to_vec();
    let action = Action::new("CancelFlightInfo", body);
    let mut results = client.do_action(request(client, action)).await.unwrap();
    let result = results.try_next().await.unwrap().unwrap();
    CancelFlightInfoResult::decode(result.body).unwrap().status()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_query_is_cancelled_while_it_streams_as_often_as_one_likes() {
    let running = start().await;
    let mut client = login(&running, "ann").await;
    let info = client.execute(LONG.to_owned(), None).await.unwrap();
    let mut rows = fetch(&mut client, &info).await;
    rows.try_next().await.unwrap().unwrap();
    for _ in 0..2 {
        assert_eq!(cancel(&mut client, &info).await, CancelStatus::Cancelled);
    }
    let reading = async {
        loop {
            match rows.try_next().await {
                Ok(batch) => assert!(batch.is_some(), "it never ends by itself"),
                Err(error) => break error.to_string(),
            }
        }
    };
    let ended = timeout(HANG, reading).await.unwrap();
    assert!(ended.contains("cancelled"), "{ended}");
    // It does not start again.
    let again = client.do_get(info.endpoint[0].ticket.clone().unwrap()).await.map(|_| ());
    assert!(again.unwrap_err().to_string().contains("cancelled"));
    query(&mut client, "SELECT count(*) FROM numbers").await;
}

/// Completes once no query runs or waits.
async fn drained(running: &Running) {
    timeout(HANG, running.server.engine().queries().drained()).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dropping_a_result_frees_its_slot() {
    let running = start_flight(|config| config.limits.queries_running = 1).await;
    let mut client = login(&running, "ann").await;
    for _ in 0..3 {
        let info = client.execute(LONG.to_owned(), None).await.unwrap();
        let mut rows = fetch(&mut client, &info).await;
        rows.try_next().await.unwrap().unwrap();
        drop(rows);
        drained(&running).await;
    }
    // One that waits for a slot gives up its place when its client gives up.
    let info = client.execute(LONG.to_owned(), None).await.unwrap();
    let _running = fetch(&mut client, &info).await;
    let mut other = login(&running, "bob").await;
    let queries = running.server.engine().queries();
    let waiting = tokio::spawn(async move { query(&mut other, "SELECT id FROM numbers").await });
    let seen = async {
        while queries.counts().1 == 0 {
            tokio::task::yield_now().await
        }
    };
    timeout(HANG, seen).await.unwrap();
    waiting.abort();
    let gone = async {
        while queries.counts().1 > 0 {
            tokio::task::yield_now().await
        }
    };
    timeout(HANG, gone).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_that_reads_nothing_holds_little_and_not_for_ever() {
    let running =
        start_flight(|config| config.limits.result_stall_max = Duration::from_secs(3)).await;
    let mut client = login(&running, "ann").await;
    let info = client.execute(LONG.to_owned(), None).await.unwrap();
    let mut rows = fetch(&mut client, &info).await;
    rows.try_next().await.unwrap().unwrap();
    drained(&running).await;
    let reports = running.server.engine().queries().list();
    let report = reports.last().unwrap();
    assert_eq!(report.state, QueryState::Cancelled);
    assert!(report.rows < 1_000_000, "{} rows were made for a client that reads none", report.rows);
    let reading = async {
        while rows.try_next().await?.is_some() {}
        Ok::<_, FlightError>(())
    };
    let ended = timeout(HANG, reading).await.unwrap().unwrap_err().to_string();
    assert!(ended.contains("result_stall_max"), "{ended}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_clients_at_once_get_the_same_answers() {
    let running = start().await;
    let mut clients = tokio::task::JoinSet::new();
    for _ in 0..16 {
        let mut client = login(&running, "bob").await;
        clients.spawn(async move {
            for _ in 0..4 {
                let rows = query(&mut client, "SELECT id, word FROM secrets").await;
                let sum: i64 = rows.column(0).as_primitive::<Int64Type>().values().iter().sum();
                assert_eq!(sum, ROWS * (ROWS - 1) / 2);
            }
        });
    }
    while let Some(done) = clients.join_next().await {
        done.unwrap();
    }
    drained(&running).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_server_stops_though_clients_stay_connected() {
    let running = start().await;
    let mut idle = login(&running, "ann").await;
    let mut busy = login(&running, "ann").await;
    let info = busy.execute(LONG.to_owned(), None).await.unwrap();
    let mut rows = fetch(&mut busy, &info).await;
    rows.try_next().await.unwrap().unwrap();
    let stopping = running.server.stop(Duration::from_millis(1), std::future::pending());
    timeout(HANG, stopping).await.unwrap();
    assert!(idle.get_catalogs().await.is_err());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_users_nobody_has_to_log_in() {
    let running = start_flight(|config| {
        config.users_file = None;
        config.insecure = true;
    })
    .await;
    let mut client = stranger(&running).await;
    query(&mut client, "SET statement_timeout = '7s'").await;
    let shown = query(&mut client, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "7000ms");
    let shown = query(&mut stranger(&running).await, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "0");
    client.handshake("ann", "").await.unwrap();
    let name = query(&mut client, "SHOW session_authorization").await;
    assert_eq!(name.column(0).as_string::<i32>().value(0), "ann");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_protocol_do_no_harm() {
    let running = start_flight(|config| {
        config.users_file = None;
        config.insecure = true;
    })
    .await;
    let at = running.server.flight.unwrap();
    let mut seed = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = move || {
        seed ^= seed << 13;
        seed ^= seed >> 7;
        seed ^= seed << 17;
        seed
    };
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for round in 0..100 {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        let noise: Vec<u8> = (0..random() % 500).map(|_| random() as u8).collect();
        let start: &[u8] = if round % 2 == 0 { preface } else { b"" };
        // The server may hang up first.
        tcp.write_all(&[start, &noise].concat()).await.ok();
        tcp.shutdown().await.ok();
        timeout(HANG, tcp.read_to_end(&mut Vec::new())).await.unwrap().ok();
    }
    // Noise within the messages of the protocol: each is answered, with an error or not.
    let uri = format!("http://{at}");
    let channel = Endpoint::from_shared(uri).unwrap().connect().await.unwrap();
    let mut raw = FlightServiceClient::new(channel.clone());
    let mut client = FlightSqlServiceClient::new(channel);
    let prepare = ActionCreatePreparedStatementRequest {
        query: "SELECT $1::bigint, $2::text".to_owned(),
        transaction_id: None,
    };
    let prepare = Action::new("CreatePreparedStatement", prepare.as_any().encode_to_vec());
    let mut prepared = raw.do_action(prepare).await.unwrap().into_inner();
    let prepared = Any::decode(prepared.message().await.unwrap().unwrap().body).unwrap();
    let prepared: ActionCreatePreparedStatementResult = prepared.unpack().unwrap().unwrap();
    let command = CommandPreparedStatementQuery {
        prepared_statement_handle: prepared.prepared_statement_handle,
    };
    let any = command.as_any().encode_to_vec();
    let descriptor = arrow_flight::FlightDescriptor::new_cmd(any.clone());
    let parameters = row(&[1], "a");
    let valid = arrow_flight::utils::batches_to_flight_data(&parameters.schema(), vec![parameters])
        .unwrap();
    let mut accepted = 0;
    for _ in 0..2000 {
        let mut messages = valid.clone();
        messages[0].flight_descriptor = Some(descriptor.clone());
        let message = &mut messages[(random() % 2) as usize];
        let mut header = message.data_header.to_vec();
        let at = random() as usize % header.len();
        header[at] = random() as u8;
        message.data_header = header.into();
        let put = raw.do_put(futures::stream::iter(messages)).await;
        let answered = match put {
            Ok(answer) => answer.into_inner().try_collect::<Vec<_>>().await.map(|_| ()),
            Err(status) => Err(status),
        };
        match answered {
            Ok(()) => accepted += 1,
            Err(status) => {
                let expected = [Code::InvalidArgument, Code::Unimplemented];
                assert!(expected.contains(&status.code()), "{status:?}");
            }
        }
        let mut noise = any.clone();
        let at = random() as usize % noise.len();
        noise[at] = random() as u8;
        raw.do_get(arrow_flight::Ticket::new(noise.clone())).await.map(|_| ()).ok();
        raw.get_flight_info(arrow_flight::FlightDescriptor::new_cmd(noise.clone())).await.ok();
        raw.do_action(Action::new("CancelFlightInfo", noise)).await.map(|_| ()).unwrap_err();
    }
    assert!(accepted > 0 && accepted < 2000, "{accepted}");
    query(&mut client, "SELECT 1").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_ends_when_its_client_says_so() {
    let running = start().await;
    let mut client = login(&running, "ann").await;
    query(&mut client, "SELECT 1").await;
    let mut closed = client.do_action(Action::new("CloseSession", "")).await.unwrap();
    assert_eq!(closed.try_next().await.unwrap().unwrap().body, [8, 1][..]);
    assert_eq!(code(&error(&mut client, "SELECT 1").await), Code::Unauthenticated);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn session_options_are_settings() {
    let running = start().await;
    let mut client = login(&running, "ann").await;
    // {"statement_timeout": "3s", "catalog": "other"}
    let entries = [("statement_timeout", "3s"), ("catalog", "other")].map(|(name, value)| {
        let value = [&[10, value.len() as u8], value.as_bytes()].concat();
        let name = [&[10, name.len() as u8], name.as_bytes()].concat();
        let entry = [&name[..], &[18, value.len() as u8], &value].concat();
        [&[10, entry.len() as u8], &entry[..]].concat()
    });
    let mut set =
        client.do_action(Action::new("SetSessionOptions", entries.concat())).await.unwrap();
    let refused = set.try_next().await.unwrap().unwrap().body;
    // {"catalog": INVALID_VALUE}
    assert_eq!(refused, [&[10, 13, 10, 7][..], b"catalog", &[18, 2, 8, 2]].concat());
    let shown = query(&mut client, "SHOW statement_timeout").await;
    assert_eq!(shown.column(0).as_string::<i32>().value(0), "3000ms");
    let mut all = client.do_action(Action::new("GetSessionOptions", "")).await.unwrap();
    let all = all.try_next().await.unwrap().unwrap().body;
    assert!(all.windows(17).any(|window| window == b"statement_timeout"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn with_a_certificate_connections_are_encrypted() {
    let at = Some("127.0.0.1:0".parse().unwrap());
    let running = start_as(|config, directory| {
        config.tls = Some(certificate(directory));
        config.listen.flight = at;
    })
    .await;
    let address = running.server.flight.unwrap();
    let plain = Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await;
    if let Ok(channel) = plain {
        let mut client = FlightSqlServiceClient::new(channel);
        timeout(HANG, client.handshake("ann", PASSWORD)).await.unwrap().unwrap_err();
    }
    let pem = std::fs::read(running.tables.directory.path().join("c.pem")).unwrap();
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(&pem).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let mut tls = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    tls.alpn_protocols = vec![b"h2".to_vec()];
    let connector = tokio_rustls::TlsConnector::from(Arc::new(tls));
    let connect = tower::service_fn(move |_| {
        let connector = connector.clone();
        async move {
            let tcp = TcpStream::connect(address).await?;
            let stream = connector.connect("localhost".try_into().unwrap(), tcp).await?;
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        }
    });
    let endpoint = Endpoint::from_static("http://localhost");
    let channel = endpoint.connect_with_connector(connect).await.unwrap();
    let mut client = FlightSqlServiceClient::new(channel);
    client.handshake("ann", PASSWORD).await.unwrap();
    assert_eq!(query(&mut client, "SELECT id FROM numbers").await.num_rows() as i64, ROWS);
}

//! Bytes that no client sends.

use std::sync::Arc;

use arrow::array::{ArrayRef, LargeListArray, NullArray, RecordBatch};
use arrow::buffer::OffsetBuffer;
use arrow::datatypes::{DataType, Field};
use arrow_flight::Action;
use arrow_flight::flight_service_client::FlightServiceClient;
use arrow_flight::sql::client::FlightSqlServiceClient;
use arrow_flight::sql::{
    ActionCreatePreparedStatementRequest, ActionCreatePreparedStatementResult, Any,
    CommandPreparedStatementQuery, ProstMessageExt,
};
use coscan_core::SplitMix64;
use futures::TryStreamExt;
use prost::Message;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tonic::Code;
use tonic::transport::{Channel, Endpoint};

use crate::flight::client::{query, row, start_flight};
use crate::support::in_time;
use crate::support::server::without_passwords;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bytes_that_are_no_protocol_do_no_harm() {
    let running = start_flight(without_passwords).await;
    let at = running.server.flight.unwrap();
    let mut random = SplitMix64(1);
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";
    for round in 0..100 {
        let mut tcp = TcpStream::connect(at).await.unwrap();
        let noise: Vec<u8> = (0..random.below(500)).map(|_| random.next_u64() as u8).collect();
        let start: &[u8] = if round % 2 == 0 { preface } else { b"" };
        // The server may close the connection first.
        tcp.write_all(&[start, &noise].concat()).await.ok();
        tcp.shutdown().await.ok();
        in_time(tcp.read_to_end(&mut Vec::new())).await.ok();
    }
    // Each message of the protocol with noise in it is answered, with an error or not.
    let uri = format!("http://{at}");
    let channel = Endpoint::from_shared(uri).unwrap().connect().await.unwrap();
    let mut raw = FlightServiceClient::new(channel.clone());
    let mut client = FlightSqlServiceClient::new(channel);
    let any = prepared(&mut raw, "SELECT $1::bigint, $2::text").await;
    let descriptor = arrow_flight::FlightDescriptor::new_cmd(any.clone());
    let parameters = row(&[1], "a");
    let valid = arrow_flight::utils::batches_to_flight_data(&parameters.schema(), vec![parameters])
        .unwrap();
    let mut accepted = 0;
    for _ in 0..2000 {
        let mut messages = valid.clone();
        messages[0].flight_descriptor = Some(descriptor.clone());
        let message = &mut messages[random.below(2) as usize];
        let mut header = message.data_header.to_vec();
        let at = random.below(header.len() as u64) as usize;
        header[at] = random.next_u64() as u8;
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
        let at = random.below(noise.len() as u64) as usize;
        noise[at] = random.next_u64() as u8;
        raw.do_get(arrow_flight::Ticket::new(noise.clone())).await.map(|_| ()).ok();
        raw.get_flight_info(arrow_flight::FlightDescriptor::new_cmd(noise.clone())).await.ok();
        raw.do_action(Action::new("CancelFlightInfo", noise)).await.map(|_| ()).unwrap_err();
    }
    assert!(accepted > 0 && accepted < 2000, "{accepted}");
    query(&mut client, "SELECT 1").await;
}

/// Prepares a statement. Returns the command that runs it.
async fn prepared(raw: &mut FlightServiceClient<Channel>, sql: &str) -> Vec<u8> {
    let prepare =
        ActionCreatePreparedStatementRequest { query: sql.to_owned(), transaction_id: None };
    let prepare = Action::new("CreatePreparedStatement", prepare.as_any().encode_to_vec());
    let mut prepared = raw.do_action(prepare).await.unwrap().into_inner();
    let prepared = Any::decode(prepared.message().await.unwrap().unwrap().body).unwrap();
    let prepared: ActionCreatePreparedStatementResult = prepared.unpack().unwrap().unwrap();
    let prepared_statement_handle = prepared.prepared_statement_handle;
    CommandPreparedStatementQuery { prepared_statement_handle }.as_any().encode_to_vec()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_list_is_not_as_long_as_a_client_says() {
    let running = start_flight(without_passwords).await;
    let uri = format!("http://{}", running.server.flight.unwrap());
    let channel = Endpoint::from_shared(uri).unwrap().connect().await.unwrap();
    let mut raw = FlightServiceClient::new(channel.clone());
    let command = prepared(&mut raw, "SELECT 1 = ANY($1)").await;
    // NULLs take no bytes in a message.
    let nulls = Arc::new(NullArray::new(1 << 46));
    let field = Arc::new(Field::new_list_field(DataType::Null, true));
    let list = LargeListArray::new(field, OffsetBuffer::from_lengths([1 << 46]), nulls, None);
    let row = RecordBatch::try_from_iter([("x", Arc::new(list) as ArrayRef)]).unwrap();
    let mut messages =
        arrow_flight::utils::batches_to_flight_data(&row.schema(), vec![row]).unwrap();
    messages[0].flight_descriptor = Some(arrow_flight::FlightDescriptor::new_cmd(command));
    assert!(messages.iter().all(|message| message.encoded_len() < 1000));
    let answer = match raw.do_put(futures::stream::iter(messages)).await {
        Ok(answer) => answer.into_inner().try_collect::<Vec<_>>().await.map(|_| ()),
        Err(status) => Err(status),
    };
    assert_eq!(answer.unwrap_err().code(), Code::Unimplemented);
    query(&mut FlightSqlServiceClient::new(channel), "SELECT 1").await;
}

//! TLS.

use std::net::SocketAddr;

use arrow_flight::sql::client::FlightSqlServiceClient;
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tonic::transport::Endpoint;

use crate::flight::client::{Client, query};
use crate::support::server::{certificate, start_as, trusting};
use crate::support::{PASSWORD, ROWS, in_time};

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
        in_time(client.handshake("ann", PASSWORD)).await.unwrap_err();
    }
    // This is another certificate for the same name.
    let other = tempfile::tempdir().unwrap();
    let other = std::fs::read(certificate(other.path()).certificate).unwrap();
    let error = connect(address, &other).await.unwrap_err();
    assert!(format!("{error:?}").contains("InvalidCertificate"), "{error:?}");
    let pem = std::fs::read(running.tables.directory.path().join("c.pem")).unwrap();
    let mut client = connect(address, &pem).await.unwrap();
    client.handshake("ann", PASSWORD).await.unwrap();
    assert_eq!(query(&mut client, "SELECT id FROM numbers").await.num_rows() as i64, ROWS);
}

/// A client that trusts this certificate only.
async fn connect(address: SocketAddr, pem: &[u8]) -> Result<Client, tonic::transport::Error> {
    let connector = trusting(pem, &[b"h2"]).unwrap();
    let connect = tower::service_fn(move |_| {
        let connector = connector.clone();
        async move {
            let tcp = TcpStream::connect(address).await?;
            let stream = connector.connect("localhost".try_into().unwrap(), tcp).await?;
            Ok::<_, std::io::Error>(TokioIo::new(stream))
        }
    });
    let endpoint = Endpoint::from_static("http://localhost");
    Ok(FlightSqlServiceClient::new(endpoint.connect_with_connector(connect).await?))
}

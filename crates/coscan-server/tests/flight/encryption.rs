//! TLS.

use std::sync::Arc;

use arrow_flight::sql::client::FlightSqlServiceClient;
use hyper_util::rt::TokioIo;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tonic::transport::Endpoint;

use crate::client::{HANG, query};
use crate::support::server::{certificate, start_as};
use crate::support::{PASSWORD, ROWS};

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

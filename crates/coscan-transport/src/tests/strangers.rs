//! Strangers that are none of the servers, and members that send invalid messages.

use std::sync::Arc;
use std::time::Duration;

use coscan_runtime::FileName;
use coscan_runtime::core::RemoteQuery;
use coscan_runtime::ring::{GetId, Message};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{DigitallySignedStruct, SignatureScheme};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::servers::{Servers, key_file};
use crate::Credentials;
use crate::frame::{Frame, UNREACHED, encode, read_header};
use crate::handshake::{Answer, Hello, Purpose};

/// A connection to the first server.
pub(super) async fn connect(
    servers: &Servers,
    credentials: &Credentials,
) -> std::io::Result<TlsStream<TcpStream>> {
    introduced(TcpStream::connect(servers.address(0)).await?, credentials).await
}

pub(super) async fn introduced(
    stream: TcpStream,
    credentials: &Credentials,
) -> std::io::Result<TlsStream<TcpStream>> {
    let tls = credentials.load().unwrap();
    let name: ServerName<'static> = tls.name.unwrap();
    TlsConnector::from(tls.client).connect(name, stream).await
}

/// A verifier that accepts any server.
#[derive(Debug)]
struct Careless;

impl ServerCertVerifier for Careless {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &CertificateDer<'_>,
        _: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        Ok(HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        default_provider().signature_verification_algorithms.supported_schemes()
    }
}

pub(super) fn hello() -> Vec<u8> {
    encode(&Hello::of("127.0.0.1:1", Purpose::Messages)).unwrap()
}

pub(super) async fn welcomed(stream: &mut (impl AsyncRead + Unpin)) {
    let answered: Option<Answer> = read_header(stream).await.unwrap();
    assert!(matches!(answered, Some(Answer::Welcome { .. })), "{answered:?}");
}

/// The bytes that come back until the server closes the connection.
pub(super) async fn answer(stream: &mut (impl AsyncReadExt + Unpin)) -> Vec<u8> {
    let mut answer = Vec::new();
    let reading = stream.read_to_end(&mut answer);
    let ended = tokio::time::timeout(Duration::from_secs(60), reading).await;
    let _broken_or_not = ended.expect("the server ends the connection");
    answer
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_key_nobody_is_heard() {
    let servers = Servers::start(2).await;
    // A connection without TLS.
    let mut plain = TcpStream::connect(servers.address(0)).await.unwrap();
    plain.write_all(&hello()).await.unwrap();
    let alert = answer(&mut plain).await;
    const ALERT: u8 = 21;
    assert!(alert.is_empty() || alert[0] == ALERT, "an alert of TLS at most: {alert:?}");
    // TLS with another key: this side refuses, and so does the other if this one does not.
    let other = key_file();
    assert!(connect(&servers, &Credentials::Key(other.path().to_owned())).await.is_err());
    let other = Credentials::Key(other.path().to_owned()).load().unwrap();
    let mut careless = (*other.client).clone();
    careless.dangerous().set_certificate_verifier(Arc::new(Careless));
    let stream = TcpStream::connect(servers.address(0)).await.unwrap();
    let careless = TlsConnector::from(Arc::new(careless));
    let connected = careless.connect(other.name.unwrap(), stream).await;
    if let Ok(mut stream) = connected {
        let _ = stream.write_all(&hello()).await;
        assert!(answer(&mut stream).await.is_empty(), "no welcome");
    }
    assert!(servers.scan(0).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_makes_no_sense_ends_the_connection_and_nothing_else() {
    let servers = Servers::start(2).await;
    let too_long = u32::MAX.to_le_bytes().to_vec();
    let garbage = [&100_u32.to_le_bytes()[..], &[0xff; 100]].concat();
    let no_membership = encode(&Frame::Membership(vec![0xff; 100])).unwrap();
    let cut_off = 100_u32.to_le_bytes().to_vec();
    let mut other_version = hello();
    other_version[4] += 1;
    let backwards = encode(&Frame::Message(Message::Pages {
        get: GetId(1),
        file: file("shared/00.parquet", 1_000, "tag"),
        pages: vec![std::ops::Range { start: 9, end: 1 }],
    }))
    .unwrap();
    let unintroduced = [too_long.clone(), garbage.clone(), cut_off];
    for sent in unintroduced {
        let mut stream = connect(&servers, &servers.credentials(0)).await.unwrap();
        stream.write_all(&sent).await.unwrap();
        let _ = stream.shutdown().await;
        assert!(answer(&mut stream).await.is_empty());
    }
    let mut stream = connect(&servers, &servers.credentials(0)).await.unwrap();
    stream.write_all(&other_version).await.unwrap();
    let answered: Option<Answer> = read_header(&mut stream).await.unwrap();
    assert!(matches!(answered, Some(Answer::OtherVersion { .. })));
    assert!(answer(&mut stream).await.is_empty());
    for sent in [too_long, garbage, no_membership, backwards] {
        let mut stream = connect(&servers, &servers.credentials(0)).await.unwrap();
        let _ = stream.write_all(&[hello(), sent, ping()].concat()).await;
        welcomed(&mut stream).await;
        assert!(answer(&mut stream).await.is_empty(), "nothing is heard after that");
    }
    assert!(servers.scan(1).await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_is_not_shared_is_not_touched() {
    let servers = Servers::start(2).await;
    servers.add_file("sharedsecret").await;
    servers.add_file("secret/00.parquet").await;
    servers.add_file("shared/new.parquet").await;
    let mut stream = connect(&servers, &servers.credentials(0)).await.unwrap();
    let mut sent = hello();
    // The one that is shared comes last: once it is touched, so are the others, if they are.
    for path in
        ["secret/00.parquet", "sharedsecret", "shared/../secret/00.parquet", "shared/new.parquet"]
    {
        let meta = servers.meta(path.trim_start_matches("shared/../")).await;
        let file = file(path, meta.size, &meta.e_tag.unwrap());
        let (pages, query) = (std::iter::once(4..1000).collect(), RemoteQuery::default());
        let get = Message::Get { get: GetId(1), file, pages, query };
        sent.extend(encode(&Frame::Message(get)).unwrap());
    }
    stream.write_all(&sent).await.unwrap();
    welcomed(&mut stream).await;
    let mut touched = Vec::new();
    while !touched.contains(&"shared/new.parquet".to_owned()) {
        tokio::task::yield_now().await;
        touched.extend(servers.files_read());
    }
    assert!(servers.scan(0).await);
    touched.extend(servers.files_read());
    assert!(touched.iter().all(|file| file.starts_with("shared/")), "{touched:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_newest_connection_of_a_server_is_heard() {
    let servers = Servers::start(2).await;
    let mut older: Option<JoinHandle<()>> = None;
    for _ in 0..3 {
        let mut newer = connect(&servers, &servers.credentials(0)).await.unwrap();
        newer.write_all(&[hello(), ping()].concat()).await.unwrap();
        welcomed(&mut newer).await;
        let heard = tokio::time::timeout(Duration::from_secs(60), newer.read_u8()).await;
        assert_eq!(heard.expect("it is heard").unwrap(), UNREACHED);
        // The connection continues as long as it is heard.
        let goes_on = tokio::spawn(async move {
            while newer.write_all(&ping()).await.is_ok() && newer.read_u8().await.is_ok() {}
        });
        if let Some(older) = older.replace(goes_on) {
            older.await.unwrap();
        }
    }
    assert!(servers.scan(0).await);
}

fn ping() -> Vec<u8> {
    encode(&Frame::Ping).unwrap()
}

/// The name of a file, as another server would write it.
pub(super) fn file(path: &str, bytes: u64, tag: &str) -> FileName {
    let (stamp, options) = ((0_u32, tag), (1_000_u64, false, true, false, None::<u8>));
    let encoded = postcard::to_stdvec(&("memory:///", path, bytes, stamp, options)).unwrap();
    postcard::from_bytes(&encoded).unwrap()
}

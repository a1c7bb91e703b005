//! The stream that pages are compared with: plain TLS.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

use bytes::BytesMut;
use rcgen::{CertifiedKey, generate_simple_self_signed};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::client::TlsStream;
use tokio_rustls::{TlsAcceptor, TlsConnector};

const NAME: &str = "bare.example";
const CERTIFICATE: &str = "bare.certificate";
const KEY: &str = "bare.key";

/// The most bytes of a write and of a read.
const STEP: usize = 1 << 20;

/// The number of different bytes: more than fit into the caches of a processor, since pages are in memory, too.
const SENT_BYTES: usize = 128 << 20;

pub(crate) fn write_certificate(directory: &Path) {
    let CertifiedKey { cert, signing_key } =
        generate_simple_self_signed([NAME.to_owned()]).unwrap();
    std::fs::write(directory.join(CERTIFICATE), cert.pem()).unwrap();
    std::fs::write(directory.join(KEY), signing_key.serialize_pem()).unwrap();
}

/// Sends to each client that connects the number of bytes that it asks for.
pub(crate) async fn send(listener: TcpListener, directory: &Path) {
    let certificate = CertificateDer::from_pem_file(directory.join(CERTIFICATE)).unwrap();
    let key = PrivateKeyDer::from_pem_file(directory.join(KEY)).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let tls = TlsAcceptor::from(Arc::new(config));
    let bytes = vec![7; SENT_BYTES];
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let mut stream = tls.accept(stream).await.unwrap();
        let mut left = stream.read_u64().await.unwrap() as usize;
        for step in bytes.chunks(STEP).cycle() {
            let step = &step[..step.len().min(left)];
            stream.write_all(step).await.unwrap();
            left -= step.len();
            if left == 0 {
                break;
            }
        }
        stream.shutdown().await.unwrap();
    }
}

/// The treatment of the bytes that are read.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Received {
    /// They are dropped.
    Dropped,
    /// They are kept for a while, as pages are.
    Kept,
}

/// Reads this number of bytes from the stream at an address.
pub(crate) async fn receive(directory: &Path, at: &str, bytes: u64, received: Received) -> u64 {
    let mut stream = connect(directory, at).await;
    stream.write_u64(bytes).await.unwrap();
    stream.flush().await.unwrap();
    let mut kept = VecDeque::from([BytesMut::with_capacity(STEP)]);
    let mut left = bytes as usize;
    while left > 0 {
        let last = kept.back_mut().expect("it is never empty");
        match (&mut stream).take((STEP - last.len()) as u64).read_buf(last).await.unwrap() {
            0 => panic!("it ended {left} bytes early"),
            more => left -= more,
        }
        match received {
            _ if last.len() < STEP => {}
            Received::Dropped => last.clear(),
            Received::Kept => kept.push_back(BytesMut::with_capacity(STEP)),
        }
        if kept.len() > SENT_BYTES / STEP {
            kept.pop_front();
        }
    }
    bytes
}

async fn connect(directory: &Path, at: &str) -> TlsStream<TcpStream> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(directory.join(CERTIFICATE)).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_protocol_versions(&[&TLS13])
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let stream = TcpStream::connect(at).await.unwrap();
    stream.set_nodelay(true).unwrap();
    let tls = TlsConnector::from(Arc::new(config));
    tls.connect(NAME.try_into().unwrap(), stream).await.unwrap()
}

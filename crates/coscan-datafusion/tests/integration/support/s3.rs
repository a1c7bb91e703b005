//! The part of S3 that reading one file takes, on the loopback interface. It finds a key by its name, and does not
//! check signatures, which the tests of the stores do.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;

pub(crate) const BUCKET: &str = "trips-bucket";
pub(crate) const FILE: &str = "numbers/1.parquet";
pub(crate) const KEY_ID: &str = "AKIDFORTHESETESTS";
pub(crate) const SECRET: &str = "a-secret-of-40-characters-for-these-tests";

/// A server of one file, until the process ends.
pub(crate) struct S3Server {
    address: SocketAddr,
}

impl S3Server {
    pub(crate) fn start(file: Vec<u8>) -> Self {
        Self::start_at("127.0.0.1:0", file)
    }

    pub(crate) fn start_at(address: &str, file: Vec<u8>) -> Self {
        let listener = TcpListener::bind(address).unwrap();
        let address = listener.local_addr().unwrap();
        let file = Arc::new(file);
        std::thread::spawn(move || {
            for connection in listener.incoming() {
                let (connection, file) = (connection.unwrap(), Arc::clone(&file));
                std::thread::spawn(move || serve(connection, &file));
            }
        });
        Self { address }
    }

    /// The address of its file for clients that use plain HTTP without a key.
    pub(crate) fn http(&self) -> String {
        format!("http://{}/http/{FILE}", self.address)
    }

    /// The options for reaching it, with the key that it accepts.
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
}

/// Answers all requests of a connection.
fn serve(mut connection: TcpStream, file: &[u8]) {
    let mut lines = BufReader::new(connection.try_clone().unwrap()).lines();
    loop {
        let request: Vec<_> =
            lines.by_ref().map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
        let Some(first) = request.first() else { return };
        let header = |name: &str| {
            let of = |line: &String| {
                let (found, value) = line.split_once(':')?;
                found.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            };
            request.iter().find_map(of).unwrap_or_default()
        };
        let knows = first.contains(" /http/")
            || header("authorization").contains(&format!("Credential={KEY_ID}/"))
                && header("authorization").contains("/eu-west-1/s3/");
        let (status, extra, body) = if !knows {
            ("403 Forbidden", String::new(), b"<Error><Code>AccessDenied</Code></Error>".to_vec())
        } else if first.contains("list-type=2") && !first.contains(BUCKET) {
            let body = "<Error><Code>NoSuchBucket</Code></Error>".to_owned();
            ("404 Not Found", String::new(), body.into_bytes())
        } else if first.contains("list-type=2") && first.contains("nothing") {
            let body = format!("<ListBucketResult><Name>{BUCKET}</Name></ListBucketResult>");
            ("200 OK", String::new(), body.into_bytes())
        } else if first.contains("list-type=2") {
            ("200 OK", String::new(), listing(file).into_bytes())
        } else if first.contains(FILE) {
            part(file, &header("range"))
        } else {
            ("404 Not Found", String::new(), b"<Error><Code>NoSuchKey</Code></Error>".to_vec())
        };
        let head = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nETag: \"1\"\r\n\
             Last-Modified: Wed, 21 Oct 2015 07:28:00 GMT\r\n{extra}\r\n",
            body.len()
        );
        let body = if first.starts_with("HEAD") { &[] } else { body.as_slice() };
        if connection.write_all(head.as_bytes()).and_then(|()| connection.write_all(body)).is_err()
        {
            return;
        }
    }
}

fn part(file: &[u8], range: &str) -> (&'static str, String, Vec<u8>) {
    let Some((start, end)) = range.strip_prefix("bytes=").and_then(|range| range.split_once('-'))
    else {
        return ("200 OK", String::new(), file.to_vec());
    };
    let (start, end): (usize, usize) = (start.parse().unwrap(), end.parse().unwrap());
    let content_range = format!("Content-Range: bytes {start}-{end}/{}\r\n", file.len());
    ("206 Partial Content", content_range, file[start..=end].to_vec())
}

fn listing(file: &[u8]) -> String {
    format!(
        "<?xml version=\"1.0\"?><ListBucketResult><Name>{BUCKET}</Name><Prefix>numbers/</Prefix><KeyCount>1</KeyCount>\
         <MaxKeys>1000</MaxKeys><IsTruncated>false</IsTruncated><Contents><Key>{FILE}</Key>\
         <LastModified>2015-10-21T07:28:00.000Z</LastModified><ETag>\"1\"</ETag><Size>{}</Size>\
         <StorageClass>STANDARD</StorageClass></Contents></ListBucketResult>",
        file.len()
    )
}

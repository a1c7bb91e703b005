//! Channel binding data, to which a login can be bound so that nobody between client and server can pass it on. It is
//! the hash of the server's certificate, `tls-server-end-point` (RFC 5929, section 4.1).

use ring::digest::{Algorithm, SHA256, SHA384, SHA512, digest};

/// The DER tags that are read.
const SEQUENCE: u8 = 0x30;
const OBJECT_IDENTIFIER: u8 = 0x06;

/// Signature algorithms by their object identifiers, with the hash of each. SHA-256 replaces MD5 and SHA-1.
const HASHES: [(&[u8], &Algorithm); 9] = [
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x04", &SHA256), // md5WithRSAEncryption
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x05", &SHA256), // sha1WithRSAEncryption
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0b", &SHA256), // sha256WithRSAEncryption
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0c", &SHA384),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0d", &SHA512),
    (b"\x2a\x86\x48\xce\x3d\x04\x01", &SHA256), // ecdsa-with-SHA1
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x02", &SHA256), // ecdsa-with-SHA256
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x03", &SHA384),
    (b"\x2a\x86\x48\xce\x3d\x04\x03\x04", &SHA512),
];

/// The hash of a certificate in DER. `None` if its signature algorithm has no hash (Ed25519), or is not known here
/// (RSASSA-PSS).
pub(super) fn server_end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    let (content, _) = value(certificate, SEQUENCE)?;
    let (_, after_signed_part) = value(content, SEQUENCE)?;
    let (algorithm, _) = value(after_signed_part, SEQUENCE)?;
    let (identifier, _) = value(algorithm, OBJECT_IDENTIFIER)?;
    let (_, hash) = HASHES.iter().find(|(known, _)| *known == identifier)?;
    Some(digest(hash, certificate).as_ref().to_vec())
}

/// Splits off a value with this tag. Returns the value and the rest.
fn value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[is, first], rest) = der.split_first_chunk()?;
    if is != tag {
        return None;
    }
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
        }
        _ => return None,
    };
    rest.split_at_checked(length)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PKCS_ED25519,
    };

    use super::*;

    #[test]
    fn the_hash_is_that_of_the_signature() {
        for (algorithm, hash) in [
            (&PKCS_ECDSA_P256_SHA256, Some(&SHA256)),
            (&PKCS_ECDSA_P384_SHA384, Some(&SHA384)),
            (&PKCS_ED25519, None),
        ] {
            let key = KeyPair::generate_for(algorithm).unwrap();
            let made =
                CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&key);
            let certificate = made.unwrap().der().to_vec();
            let expected = hash.map(|hash| digest(hash, &certificate).as_ref().to_vec());
            assert_eq!(server_end_point(&certificate), expected);
        }
    }

    #[test]
    fn malformed_der_has_no_channel_binding() {
        for bytes in [
            &b""[..],
            b"\x30",
            b"\x30\x05\x30",
            b"\x30\x85\x01\x01\x01\x01\x01",
            b"\x30\x02\x30\x00",
        ] {
            assert_eq!(server_end_point(bytes), None);
        }
    }
}

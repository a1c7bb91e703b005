//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677): messages in, messages out, no I/O.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

use crate::users::Users;
use crate::users::verifier::{Verifier, hmac_sha256, sha256};

/// The longest message of a client that is read, in bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// Why a login by SCRAM fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// A message that the mechanism does not have.
    #[error("malformed SCRAM message")]
    Malformed,
    /// Client and server do not agree on channel binding: somebody between them may have changed what each heard.
    #[error(
        "client and server do not agree on channel binding; is there a proxy that ends TLS between them?"
    )]
    ChannelBinding,
    /// The proof does not fit the user and the password.
    #[error("wrong user or password")]
    WrongProof,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

/// The mechanism with channel binding.
pub const BOUND_MECHANISM: &str = "SCRAM-SHA-256-PLUS";

/// The one kind of channel binding that is offered.
const BINDING_FLAG: &str = "p=tls-server-end-point";

/// Whether a dialogue is bound to its TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound<'a> {
    /// The client has chosen not to, although it may have been offered.
    No {
        /// Whether it was.
        was_offered: bool,
    },
    /// To this hash of the server's certificate.
    To(&'a [u8]),
}

/// The proof that a dialogue has succeeded for a user.
#[derive(Debug)]
pub struct Verified {
    user: String,
}

impl Verified {
    /// The user's name.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }
}

/// A dialogue after the client's first message.
#[derive(Debug)]
pub struct Scram {
    user: String,
    verifier: Verifier,
    /// The client's flag of channel binding and what it is bound to, as it must return.
    binding: Vec<u8>,
    client_first_bare: String,
    server_first: String,
    nonce: String,
}

impl Scram {
    /// Reads the client's first message. The user in it is ignored: the protocol around it has named one. The dialogue
    /// of an unknown user looks like any other, and fails at its end.
    ///
    /// # Errors
    /// If it is malformed, or client and server do not agree on channel binding.
    pub fn start(
        users: &Users,
        user: &str,
        client_first: &[u8],
        bound: Bound<'_>,
    ) -> Result<Self, ScramError> {
        let mut nonce = [0; 18];
        SystemRandom::new().fill(&mut nonce).map_err(|_| ScramError::NoRandomness)?;
        let nonce = BASE64.encode(nonce);
        Self::with_nonce(client_first, user, users.verifier_of(user), &nonce, bound)
    }

    fn with_nonce(
        client_first: &[u8],
        user: &str,
        verifier: Verifier,
        server_nonce: &str,
        bound: Bound<'_>,
    ) -> Result<Self, ScramError> {
        let message = text(client_first)?;
        let (flag, rest) = message.split_once(',').ok_or(ScramError::Malformed)?;
        let (authorization, bare) = rest.split_once(',').ok_or(ScramError::Malformed)?;
        let bound = match (flag, bound) {
            ("n", Bound::No { .. }) | ("y", Bound::No { was_offered: false }) => &[],
            (BINDING_FLAG, Bound::To(bound)) => bound,
            // "y": the client would have bound it, and has not heard of the offer.
            (flag, _) if ["n", "y"].contains(&flag) || flag.starts_with("p=") => {
                return Err(ScramError::ChannelBinding);
            }
            _ => return Err(ScramError::Malformed),
        };
        if !authorization.is_empty() && !authorization.starts_with("a=") {
            return Err(ScramError::Malformed);
        }
        let mut attributes = bare.split(',');
        let name = attributes.next().is_some_and(|name| name.starts_with("n="));
        let nonce = attributes.next().and_then(|nonce| nonce.strip_prefix("r="));
        let (true, Some(nonce)) = (name, nonce) else { return Err(ScramError::Malformed) };
        if nonce.is_empty() || !nonce.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(ScramError::Malformed);
        }
        let nonce = format!("{nonce}{server_nonce}");
        let salt = BASE64.encode(&verifier.salt);
        Ok(Self {
            user: user.to_owned(),
            binding: [format!("{flag},{authorization},").as_bytes(), bound].concat(),
            client_first_bare: bare.to_owned(),
            server_first: format!("r={nonce},s={salt},i={}", verifier.iterations),
            nonce,
            verifier,
        })
    }

    /// The message to answer with.
    #[must_use]
    pub fn server_first(&self) -> &str {
        &self.server_first
    }

    /// Checks the client's last message; the text to answer with, and the proof.
    ///
    /// # Errors
    /// If it is malformed or the proof is wrong.
    pub fn finish(self, client_final: &[u8]) -> Result<(String, Verified), ScramError> {
        let message = text(client_final)?;
        let (without_proof, proof) = message.rsplit_once(",p=").ok_or(ScramError::Malformed)?;
        let mut attributes = without_proof.split(',');
        let binding = attributes.next().and_then(|binding| binding.strip_prefix("c="));
        let nonce = attributes.next().and_then(|nonce| nonce.strip_prefix("r="));
        let (Some(binding), Some(nonce)) = (binding, nonce) else {
            return Err(ScramError::Malformed);
        };
        let binding = BASE64.decode(binding).map_err(|_| ScramError::Malformed)?;
        if nonce != self.nonce {
            return Err(ScramError::Malformed);
        }
        if binding != self.binding {
            return Err(ScramError::ChannelBinding);
        }
        let proof = BASE64.decode(proof).map_err(|_| ScramError::Malformed)?;
        let proof = <[u8; 32]>::try_from(proof).map_err(|_| ScramError::Malformed)?;
        let Self { client_first_bare, server_first, verifier, .. } = &self;
        let signed = format!("{client_first_bare},{server_first},{without_proof}");
        let mut client_key = hmac_sha256(&verifier.stored_key, signed.as_bytes());
        for (byte, proof) in client_key.iter_mut().zip(proof) {
            *byte ^= proof;
        }
        if !bool::from(sha256(&client_key).ct_eq(&verifier.stored_key)) {
            return Err(ScramError::WrongProof);
        }
        let signature = hmac_sha256(&verifier.server_key, signed.as_bytes());
        Ok((format!("v={}", BASE64.encode(signature)), Verified { user: self.user }))
    }
}

fn text(message: &[u8]) -> Result<&str, ScramError> {
    let is_short = message.len() <= MESSAGE_BYTES_MAX;
    let text = std::str::from_utf8(message).ok().filter(|_| is_short);
    text.ok_or(ScramError::Malformed)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::num::NonZeroU32;

    use super::*;
    use crate::users::verifier::Nobody;

    const CLIENT_FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const NOT_BOUND: Bound<'_> = Bound::No { was_offered: false };
    const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    fn pencil() -> Verifier {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        Verifier::with_salt("pencil", salt, NonZeroU32::new(4096).unwrap())
    }

    #[test]
    fn the_example_of_rfc_7677() {
        let scram =
            Scram::with_nonce(CLIENT_FIRST, "user", pencil(), SERVER_NONCE, NOT_BOUND).unwrap();
        assert_eq!(
            scram.server_first(),
            "r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
        );
        assert_eq!(
            scram.finish(CLIENT_FINAL.as_bytes()).unwrap().0,
            "v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
        );
    }

    #[test]
    fn a_wrong_proof_nonce_or_binding_is_refused() {
        let finish = |message: &str| {
            let scram =
                Scram::with_nonce(CLIENT_FIRST, "user", pencil(), SERVER_NONCE, NOT_BOUND).unwrap();
            scram.finish(message.as_bytes()).map(|(text, _)| text)
        };
        assert_eq!(finish(&CLIENT_FINAL.replace("dHzb", "eHzb")), Err(ScramError::WrongProof));
        for message in [
            CLIENT_FINAL.replace("k0", "k1"),
            CLIENT_FINAL.replace("dHzb", ""),
            CLIENT_FINAL.replace(",p=", ",q="),
            String::new(),
            "c=biws,p=".to_owned(),
        ] {
            assert_eq!(finish(&message), Err(ScramError::Malformed), "{message}");
        }
        let other = CLIENT_FINAL.replace("biws", "eSws");
        assert_eq!(finish(&other), Err(ScramError::ChannelBinding));
        let scram = Scram::with_nonce(
            CLIENT_FIRST,
            "user",
            Nobody::among(std::iter::once(&pencil())).verifier("user"),
            SERVER_NONCE,
            NOT_BOUND,
        );
        let refused = scram.unwrap().finish(CLIENT_FINAL.as_bytes());
        assert_eq!(refused.map(|_| ()), Err(ScramError::WrongProof));
    }

    #[test]
    fn malformed_first_messages_are_refused() {
        let users = Users::parse("").unwrap();
        let start = |message: &[u8]| {
            Scram::start(&users, "user", message, NOT_BOUND).map(|_| ()).unwrap_err()
        };
        for message in [
            &b""[..],
            b"n",
            b"n,,",
            b"n,,n=user",
            b"n,,r=abc",
            b"n,,n=user,r=",
            b"n,x,n=user,r=abc",
            b"z,,n=user,r=abc",
            b"\xff,,n=user,r=abc",
            b"n,,n=user,r=a b",
        ] {
            assert_eq!(start(message), ScramError::Malformed, "{message:?}");
        }
    }

    #[test]
    fn client_and_server_must_agree_on_what_a_login_is_bound_to() {
        let users = Users::parse("").unwrap();
        let offered = Bound::No { was_offered: true };
        for (flag, bound, is_agreed) in [
            ("n", NOT_BOUND, true),
            ("y", NOT_BOUND, true),
            ("n", offered, true),
            ("y", offered, false),
            ("n", Bound::To(b"hash"), false),
            ("p=tls-unique", Bound::To(b"hash"), false),
            ("p=tls-server-end-point", Bound::To(b"hash"), true),
            ("p=tls-server-end-point", offered, false),
        ] {
            let first = format!("{flag},,n=user,r=abc");
            let started = Scram::start(&users, "user", first.as_bytes(), bound);
            let expected = (!is_agreed).then_some(ScramError::ChannelBinding);
            assert_eq!(started.err(), expected, "{flag} {bound:?}");
        }
    }

    #[test]
    fn a_login_over_another_certificate_is_refused() {
        let first = CLIENT_FIRST.strip_prefix(b"n").unwrap();
        let first = [b"p=tls-server-end-point", first].concat();
        let bound = Bound::To(b"ours");
        for (sent, expected) in
            [("ours", ScramError::WrongProof), ("other", ScramError::ChannelBinding)]
        {
            let scram = Scram::with_nonce(&first, "user", pencil(), SERVER_NONCE, bound).unwrap();
            let binding = BASE64.encode(format!("p=tls-server-end-point,,{sent}"));
            let last = CLIENT_FINAL.replace("biws", &binding);
            assert_eq!(scram.finish(last.as_bytes()).map(|_| ()), Err(expected), "{sent}");
        }
    }
}

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
    /// The client insists on channel binding, which this server does not offer.
    #[error("channel binding is not supported")]
    ChannelBinding,
    /// The proof does not fit the user and the password.
    #[error("wrong user or password")]
    WrongProof,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
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
    /// The client's flag of channel binding, as it must return.
    gs2_header: String,
    client_first_bare: String,
    server_first: String,
    nonce: String,
}

impl Scram {
    /// Reads the client's first message. The user in it is ignored: the protocol around it has named one. The dialogue
    /// of an unknown user looks like any other, and fails at its end.
    ///
    /// # Errors
    /// If it is malformed or asks for channel binding.
    pub fn start(users: &Users, user: &str, client_first: &[u8]) -> Result<Self, ScramError> {
        let mut nonce = [0; 18];
        SystemRandom::new().fill(&mut nonce).map_err(|_| ScramError::NoRandomness)?;
        Self::with_nonce(client_first, user, users.verifier_of(user), &BASE64.encode(nonce))
    }

    fn with_nonce(
        client_first: &[u8],
        user: &str,
        verifier: Verifier,
        server_nonce: &str,
    ) -> Result<Self, ScramError> {
        let message = text(client_first)?;
        let (flag, rest) = message.split_once(',').ok_or(ScramError::Malformed)?;
        let (authorization, bare) = rest.split_once(',').ok_or(ScramError::Malformed)?;
        match flag {
            "n" | "y" => {}
            flag if flag.starts_with("p=") => return Err(ScramError::ChannelBinding),
            _ => return Err(ScramError::Malformed),
        }
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
            gs2_header: format!("{flag},{authorization},"),
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
        if binding != self.gs2_header.as_bytes() || nonce != self.nonce {
            return Err(ScramError::Malformed);
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

    const CLIENT_FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
    const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
    const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
        p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

    fn pencil() -> Verifier {
        let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
        Verifier::with_salt("pencil", salt, NonZeroU32::new(4096).unwrap())
    }

    #[test]
    fn the_example_of_rfc_7677() {
        let scram = Scram::with_nonce(CLIENT_FIRST, "user", pencil(), SERVER_NONCE).unwrap();
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
            let scram = Scram::with_nonce(CLIENT_FIRST, "user", pencil(), SERVER_NONCE).unwrap();
            scram.finish(message.as_bytes()).map(|(text, _)| text)
        };
        assert_eq!(finish(&CLIENT_FINAL.replace("dHzb", "eHzb")), Err(ScramError::WrongProof));
        for message in [
            CLIENT_FINAL.replace("k0", "k1"),
            CLIENT_FINAL.replace("biws", "eSws"),
            CLIENT_FINAL.replace("dHzb", ""),
            CLIENT_FINAL.replace(",p=", ",q="),
            String::new(),
            "c=biws,p=".to_owned(),
        ] {
            assert_eq!(finish(&message), Err(ScramError::Malformed), "{message}");
        }
        let scram = Scram::with_nonce(
            CLIENT_FIRST,
            "user",
            Verifier::of_nobody(&[7; 32], "user"),
            SERVER_NONCE,
        );
        let refused = scram.unwrap().finish(CLIENT_FINAL.as_bytes());
        assert_eq!(refused.map(|_| ()), Err(ScramError::WrongProof));
    }

    #[test]
    fn malformed_first_messages_are_refused() {
        let users = Users::parse("").unwrap();
        let start = |message: &[u8]| Scram::start(&users, "user", message).map(|_| ()).unwrap_err();
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
        assert_eq!(start(b"p=tls-unique,,n=user,r=abc"), ScramError::ChannelBinding);
    }
}

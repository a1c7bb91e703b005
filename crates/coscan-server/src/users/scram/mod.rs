//! The server's side of SCRAM-SHA-256 (RFC 5802, RFC 7677), without I/O.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use subtle::ConstantTimeEq;

use crate::users::Users;
use crate::users::verifier::{Verifier, hmac_sha256, sha256};

/// The maximum length of a client's message, in bytes.
const MESSAGE_BYTES_MAX: usize = 4096;

/// The reason why a login by SCRAM fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ScramError {
    /// The message is not a message of the mechanism.
    #[error("malformed SCRAM message")]
    Malformed,
    /// Client and server do not agree on channel binding, so their messages may have been changed in between.
    #[error(
        "channel binding failed: client and server saw different certificates or mechanisms; is there a proxy that terminates TLS between them?"
    )]
    ChannelBindingFailed,
    /// The proof does not match the user and the password.
    #[error("wrong user or password")]
    WrongProof,
    /// The system provides no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

/// The mechanism with channel binding.
pub const MECHANISM_PLUS: &str = "SCRAM-SHA-256-PLUS";

/// The only kind of channel binding that is offered.
const BINDING_FLAG: &str = "p=tls-server-end-point";

/// Whether a dialogue is bound to its TLS connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChannelBinding<'a> {
    /// The client does not bind the dialogue, although channel binding may have been offered.
    No {
        /// Whether channel binding was offered.
        was_offered: bool,
    },
    /// The dialogue is bound to this hash of the server's certificate.
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
    /// The client's flag of channel binding and the bound data, as the client must return them.
    binding: Vec<u8>,
    client_first_bare: String,
    server_first: String,
    nonce: String,
}

impl Scram {
    /// Reads the client's first message. The user in it is ignored, since the surrounding protocol has named one. The
    /// dialogue of an unknown user looks like any other, and fails at its end.
    ///
    /// # Errors
    /// If it is malformed, or client and server do not agree on channel binding.
    pub fn start(
        users: &Users,
        user: &str,
        client_first: &[u8],
        bound: ChannelBinding<'_>,
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
        bound: ChannelBinding<'_>,
    ) -> Result<Self, ScramError> {
        let message = text(client_first)?;
        let (flag, rest) = message.split_once(',').ok_or(ScramError::Malformed)?;
        let (authorization, bare) = rest.split_once(',').ok_or(ScramError::Malformed)?;
        let bound = match (flag, bound) {
            ("n", ChannelBinding::No { .. }) | ("y", ChannelBinding::No { was_offered: false }) => {
                &[]
            }
            (BINDING_FLAG, ChannelBinding::To(bound)) => bound,
            // With "y", the client would have bound the dialogue, but has not received the offer.
            (flag, _) if ["n", "y"].contains(&flag) || flag.starts_with("p=") => {
                return Err(ScramError::ChannelBindingFailed);
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

    /// Checks the client's last message. Returns the text of the answer, and the proof.
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
            return Err(ScramError::ChannelBindingFailed);
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
mod tests;

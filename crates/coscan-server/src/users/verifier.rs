//! Verifiers of passwords: enough to check a password, not enough to log in with.

use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use subtle::ConstantTimeEq;

/// The mechanism and the first word of a verifier.
pub const MECHANISM: &str = "SCRAM-SHA-256";

/// Rounds of hashing of new verifiers, as PostgreSQL does.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).expect("it is not zero");

/// The most rounds that are accepted: more would let one login take seconds of a processor.
const ITERATIONS_MAX: u32 = 1_000_000;

const SALT_BYTES: usize = 16;

/// A password as PostgreSQL keeps it: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`, salt and keys in base 64
/// (RFC 5803).
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    pub(super) iterations: NonZeroU32,
    pub(super) salt: Vec<u8>,
    pub(super) stored_key: [u8; 32],
    pub(super) server_key: [u8; 32],
}

/// A text that is no verifier, or no randomness to make one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifierError {
    /// The text has another form.
    #[error(
        "it is not of the form SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey; make one with `coscan user NAME`"
    )]
    Form,
    /// The system gives no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

impl Verifier {
    /// That of a new password, with a random salt.
    ///
    /// # Errors
    /// If the system gives no random bytes.
    pub fn of_password(password: &str) -> Result<Self, VerifierError> {
        let mut salt = vec![0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).map_err(|_| VerifierError::NoRandomness)?;
        Ok(Self::with_salt(password, salt, ITERATIONS))
    }

    /// That of a password with a given salt.
    #[must_use]
    pub fn with_salt(password: &str, salt: Vec<u8>, iterations: NonZeroU32) -> Self {
        let salted = salted_password(password, &salt, iterations);
        let client_key = hmac_sha256(&salted, b"Client Key");
        Self {
            iterations,
            salt,
            stored_key: sha256(&client_key),
            server_key: hmac_sha256(&salted, b"Server Key"),
        }
    }

    /// Reads a verifier.
    ///
    /// # Errors
    /// If the text has another form.
    pub fn parse(text: &str) -> Result<Self, VerifierError> {
        Self::try_parse(text).ok_or(VerifierError::Form)
    }

    fn try_parse(text: &str) -> Option<Self> {
        let mut parts = text.split('$');
        let (mechanism, salt, keys) = (parts.next()?, parts.next()?, parts.next()?);
        if mechanism != MECHANISM || parts.next().is_some() {
            return None;
        }
        let (iterations, salt) = salt.split_once(':')?;
        let (stored_key, server_key) = keys.split_once(':')?;
        let iterations: u32 = iterations.parse().ok()?;
        let salt = BASE64.decode(salt).ok().filter(|salt| !salt.is_empty())?;
        let key = |text: &str| <[u8; 32]>::try_from(BASE64.decode(text).ok()?).ok();
        Some(Self {
            iterations: NonZeroU32::new(iterations).filter(|n| n.get() <= ITERATIONS_MAX)?,
            salt,
            stored_key: key(stored_key)?,
            server_key: key(server_key)?,
        })
    }

    /// Whether this is the password, for protocols that send it. Takes some milliseconds of a processor.
    #[must_use]
    pub fn accepts(&self, password: &str) -> bool {
        let other = Self::with_salt(password, self.salt.clone(), self.iterations);
        other.stored_key.ct_eq(&self.stored_key).into()
    }

    /// A verifier that no password fits, always the same for a secret and a name: strangers cannot tell which users
    /// exist.
    #[must_use]
    pub(super) fn of_nobody(secret: &[u8; 32], name: &str) -> Self {
        let salt = hmac_sha256(secret, name.as_bytes())[..SALT_BYTES].to_vec();
        // Keys that are hashes of nothing a client could know the source of.
        let stored_key = hmac_sha256(secret, &[b"stored", name.as_bytes()].concat());
        let server_key = hmac_sha256(secret, &[b"server", name.as_bytes()].concat());
        Self { iterations: ITERATIONS, salt, stored_key, server_key }
    }
}

impl fmt::Display for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { iterations, salt, stored_key, server_key } = self;
        let [salt, stored_key, server_key] =
            [&salt[..], &stored_key[..], &server_key[..]].map(|bytes| BASE64.encode(bytes));
        write!(f, "{MECHANISM}${iterations}:{salt}${stored_key}:{server_key}")
    }
}

/// Does not show the keys: whoever has them can pretend to be the server.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

fn salted_password(password: &str, salt: &[u8], iterations: NonZeroU32) -> [u8; 32] {
    // A password that SASLprep refuses is taken as it is, as PostgreSQL does.
    let prepared = stringprep::saslprep(password).unwrap_or(password.into());
    let mut salted = [0; 32];
    pbkdf2::derive(pbkdf2::PBKDF2_HMAC_SHA256, iterations, salt, prepared.as_bytes(), &mut salted);
    salted
}

pub(super) fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    tag.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

pub(super) fn sha256(message: &[u8]) -> [u8; 32] {
    let hash = digest::digest(&digest::SHA256, message);
    hash.as_ref().try_into().expect("SHA-256 has 32 bytes")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn a_verifier_accepts_its_password_only_and_survives_its_text() {
        let verifier = Verifier::of_password("pencil").unwrap();
        let read = Verifier::parse(&verifier.to_string()).unwrap();
        assert_eq!(read, verifier);
        assert!(read.accepts("pencil"));
        assert!(!read.accepts("Pencil") && !read.accepts(""));
    }

    #[test]
    fn other_texts_are_no_verifiers() {
        let good = Verifier::of_password("pencil").unwrap().to_string();
        let mut wrong = vec![
            String::new(),
            "md5abc".to_owned(),
            good.replace("4096", "0"),
            good.replace("4096", "4000000000"),
            good.replace("256$", "1$"),
            format!("{good}$"),
            good.replace(':', ""),
        ];
        wrong.push(good[..good.len() - 4].to_owned());
        for text in wrong {
            assert_eq!(Verifier::parse(&text), Err(VerifierError::Form), "{text}");
        }
    }

    #[test]
    fn the_debug_form_shows_no_key() {
        let verifier = Verifier::of_password("pencil").unwrap();
        let text = verifier.to_string();
        let server_key = text.rsplit(':').next().unwrap();
        assert!(!format!("{verifier:?}").contains(server_key));
    }
}

//! Verifiers of passwords, which suffice to check a password, but not to log in.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use ring::rand::{SecureRandom, SystemRandom};
use ring::{digest, hmac, pbkdf2};
use subtle::ConstantTimeEq;

/// The mechanism and the first word of a verifier.
pub const MECHANISM: &str = "SCRAM-SHA-256";

/// The number of hashing rounds of new verifiers, as in PostgreSQL.
const ITERATIONS: NonZeroU32 = NonZeroU32::new(4096).expect("it is not zero");

/// The maximum number of accepted rounds. With more, one login would take seconds of processor time.
const ITERATIONS_MAX: u32 = 1_000_000;

const SALT_BYTES: usize = 16;

/// A password in the form in which PostgreSQL stores it: `SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey`, with salt
/// and keys in base 64 (RFC 5803).
#[derive(Clone, PartialEq, Eq)]
pub struct Verifier {
    pub(super) iterations: NonZeroU32,
    pub(super) salt: Vec<u8>,
    pub(super) stored_key: [u8; 32],
    pub(super) server_key: [u8; 32],
}

/// The reason why a verifier cannot be read or created.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VerifierError {
    /// The text is not in the required form.
    #[error(
        "it is not of the form SCRAM-SHA-256$iterations:salt$StoredKey:ServerKey; make one with `coscan user NAME`"
    )]
    Form,
    /// The system provides no random bytes.
    #[error("the system gives no random bytes")]
    NoRandomness,
}

impl Verifier {
    /// Creates the verifier of a new password, with a random salt.
    ///
    /// # Errors
    /// If the system provides no random bytes.
    pub fn of_password(password: &str) -> Result<Self, VerifierError> {
        let mut salt = vec![0; SALT_BYTES];
        SystemRandom::new().fill(&mut salt).map_err(|_| VerifierError::NoRandomness)?;
        Ok(Self::with_salt(password, salt, ITERATIONS))
    }

    /// Creates the verifier of a password with a given salt.
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

    /// Parses a verifier.
    ///
    /// # Errors
    /// If the text is not in the required form.
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

    /// Whether this is the password, for protocols that send it. Takes some milliseconds of processor time.
    #[must_use]
    pub fn accepts(&self, password: &str) -> bool {
        let other = Self::with_salt(password, self.salt.clone(), self.iterations);
        other.stored_key.ct_eq(&self.stored_key).into()
    }
}

/// Verifiers for unknown names, so that logins of existing and of unknown users look the same (PostgreSQL's mock
/// authentication). They are derived from the verifiers of the users file, so that they are the same after a restart
/// and on other servers. They have the length of salt and the number of iterations that most users have. They stay
/// while the server runs. A client that logs in before and after a restart with another file can distinguish them,
/// since the verifiers of users stay then.
#[derive(Debug)]
pub(super) struct MockVerifiers {
    secret: [u8; 32],
    iterations: NonZeroU32,
    salt_bytes: usize,
}

impl MockVerifiers {
    /// Creates verifiers that resemble those of these users.
    pub(super) fn like<'a>(users: impl Iterator<Item = &'a Verifier>) -> Self {
        let (mut all, mut counts) = (Vec::new(), BTreeMap::new());
        for user in users {
            all.extend_from_slice(&user.stored_key);
            all.extend_from_slice(&user.server_key);
            *counts.entry((user.iterations, user.salt.len())).or_insert(0_usize) += 1;
        }
        let most = counts.into_iter().max_by_key(|(_, count)| *count);
        let (iterations, salt_bytes) = most.map_or((ITERATIONS, SALT_BYTES), |(most, _)| most);
        Self {
            secret: hmac_sha256(b"coscan: names that are no users'", &all),
            iterations,
            salt_bytes,
        }
    }

    /// Keeps the salts of other mock verifiers.
    pub(super) fn keep_secret_of(&mut self, others: &Self) {
        self.secret = others.secret;
    }

    /// A verifier that no password matches.
    pub(super) fn verifier(&self, name: &str) -> Verifier {
        let of = |what: &[u8]| hmac_sha256(&self.secret, &[what, name.as_bytes()].concat());
        let salt = (0_u8..).flat_map(|part| of(&[part])).take(self.salt_bytes).collect();
        // The keys are hashes of data that no client can know.
        let (stored_key, server_key) = (of(b"stored"), of(b"server"));
        Verifier { iterations: self.iterations, salt, stored_key, server_key }
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

/// Hides the keys, since with them one can pretend to be the server.
impl fmt::Debug for Verifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Verifier").field("iterations", &self.iterations).finish_non_exhaustive()
    }
}

fn salted_password(password: &str, salt: &[u8], iterations: NonZeroU32) -> [u8; 32] {
    // A password that SASLprep rejects is used unchanged, as in PostgreSQL.
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
    fn names_that_are_no_users_look_like_those_of_most_users() {
        let salt = |byte: u8, bytes: usize| vec![byte; bytes];
        let rounds = |count| NonZeroU32::new(count).unwrap();
        let users = [
            Verifier::with_salt("a", salt(1, 16), rounds(4096)),
            Verifier::with_salt("b", salt(2, 20), rounds(10)),
            Verifier::with_salt("c", salt(3, 20), rounds(10)),
        ];
        let nobody = MockVerifiers::like(users.iter()).verifier("eve");
        assert_eq!((nobody.iterations, nobody.salt.len()), (rounds(10), 20));
        assert_eq!(
            MockVerifiers::like(users.iter()).verifier("eve"),
            nobody,
            "also after a restart"
        );
        assert_ne!(MockVerifiers::like(users.iter()).verifier("zed").salt, nobody.salt);
        let mut after = MockVerifiers::like(users[1..].iter());
        assert_ne!(after.verifier("eve").salt, nobody.salt);
        after.keep_secret_of(&MockVerifiers::like(users.iter()));
        assert_eq!(after.verifier("eve").salt[..16], nobody.salt[..16], "also after a reload");
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

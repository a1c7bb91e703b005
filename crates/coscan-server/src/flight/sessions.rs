//! Authentication of calls by the token of a login, by a password with each call, or, on servers without passwords, by
//! the connection.

use std::sync::Arc;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{
    GeneralPurpose, GeneralPurposeConfig, URL_SAFE_NO_PAD as TOKEN_BASE64,
};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use crate::flight::connection::Caller;
use crate::flight::handles::{Bounds, Handles};
use crate::sql::{LoginError, Proof, Session, SqlService};

/// The user name of clients that send none, on servers without passwords.
const ANYONE: &str = "anyone";

/// Padding is optional, since only some clients pad.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The maximum number of tokens of a user, and of all users.
const TOKENS_MAX: (usize, usize) = (4096, 65_536);

/// The sessions of logged-in users.
#[derive(Debug)]
pub(super) struct Sessions {
    service: Arc<SqlService>,
    tokens: Handles<Arc<Session>>,
}

/// The credentials of a call.
enum Credentials {
    None,
    Token(Vec<u8>),
    Password { user: String, password: String },
}

impl Sessions {
    pub(super) fn new(service: Arc<SqlService>) -> Self {
        let bounds = Bounds {
            lifetime: service.limits().token_lifetime,
            of_user: TOKENS_MAX.0,
            of_all: TOKENS_MAX.1,
            bytes_of_user: usize::MAX,
        };
        Self { service, tokens: Handles::new(bounds) }
    }

    /// Logs a user in. Returns the token for further calls.
    pub(super) async fn login<T>(&self, request: &Request<T>) -> Result<String, Status> {
        let (user, password) = match credentials(request.metadata())? {
            Credentials::Password { user, password } => (user, password),
            Credentials::None if !self.service.users().check_passwords() => Default::default(),
            _ => return Err(Status::unauthenticated("log in with a user and a password")),
        };
        let session = self.log_in(request, &user, &password).await?;
        let token = self.tokens.add(&session.user.name, 0, session.clone())?;
        Ok(TOKEN_BASE64.encode(token))
    }

    /// Refuses calls without valid credentials before any byte of their messages is read.
    pub(super) fn check<T>(&self, request: &Request<T>) -> Result<(), Status> {
        match credentials(request.metadata())? {
            Credentials::Token(token) => self.session_of_token(request, &token).map(|_| ()),
            Credentials::Password { .. } => Ok(()), // Looked at by the call.
            Credentials::None if self.service.users().check_passwords() => Err(not_logged_in()),
            Credentials::None => Ok(()),
        }
    }

    /// The session of a call.
    pub(super) async fn session_of<T>(&self, request: &Request<T>) -> Result<Arc<Session>, Status> {
        match credentials(request.metadata())? {
            Credentials::Token(token) => self.session_of_token(request, &token),
            Credentials::Password { user, password } => {
                self.log_in(request, &user, &password).await
            }
            Credentials::None if self.service.users().check_passwords() => Err(not_logged_in()),
            Credentials::None => match request.extensions().get::<Caller>() {
                Some(caller) => caller.session(self.log_in(request, "", "")).await,
                None => self.log_in(request, "", "").await,
            },
        }
    }

    fn session_of_token<T>(
        &self,
        request: &Request<T>,
        token: &[u8],
    ) -> Result<Arc<Session>, Status> {
        let session = self.tokens.get(token);
        // The grants of a user may have changed since.
        let is_valid = |session: &Arc<Session>| self.service.users().is_unchanged(&session.user);
        let session = session.filter(is_valid).ok_or_else(|| {
            Status::unauthenticated("the token is unknown or has expired; log in again")
        })?;
        logged_in(request, &session)?;
        Ok(session)
    }

    async fn log_in<T>(
        &self,
        request: &Request<T>,
        user: &str,
        password: &str,
    ) -> Result<Arc<Session>, Status> {
        let (user, proof) = if self.service.users().check_passwords() {
            (user, Proof::Password(password))
        } else {
            (if user.is_empty() { ANYONE } else { user }, Proof::None)
        };
        let address = request.extensions().get::<Caller>().map(|caller| caller.address);
        let ip = address.map(|address| address.ip());
        let checked = self.service.login_from(ip, user, proof).await;
        let session = checked.map_err(|error| {
            log::info!("{address:?} was refused: {error}");
            match error {
                LoginError::TooMany(_) => Status::resource_exhausted(error.to_string()),
                LoginError::Wrong => Status::unauthenticated(error.to_string()),
            }
        })?;
        logged_in(request, &session)?;
        Ok(Arc::new(session))
    }

    /// Ends the session of a call that carries a token.
    pub(super) fn close<T>(&self, request: &Request<T>) -> Result<(), Status> {
        if let Credentials::Token(token) = credentials(request.metadata())? {
            self.tokens.remove(&token);
        }
        Ok(())
    }
}

fn not_logged_in() -> Status {
    Status::unauthenticated("log in first, with a user and a password")
}

fn logged_in<T>(request: &Request<T>, session: &Session) -> Result<(), Status> {
    let Some(caller) = request.extensions().get::<Caller>() else { return Ok(()) };
    let admitted = caller.logged_in(&session.user);
    admitted.map_err(|error| Status::resource_exhausted(error.to_string()))
}

fn credentials(metadata: &MetadataMap) -> Result<Credentials, Status> {
    let Some(value) = metadata.get("authorization") else { return Ok(Credentials::None) };
    let malformed = || {
        Status::unauthenticated(
            "the authorization is neither `Basic` nor `Bearer`, or is malformed",
        )
    };
    let (scheme, value) =
        value.to_str().ok().and_then(|value| value.split_once(' ')).ok_or_else(malformed)?;
    let value = value.trim();
    if scheme.eq_ignore_ascii_case("bearer") {
        // A token in another form is not a token of this server.
        return Ok(Credentials::Token(TOKEN_BASE64.decode(value).unwrap_or_default()));
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return Err(malformed());
    }
    let text = BASE64.decode(value).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    // Passwords may contain colons.
    let text = text.as_deref().and_then(|text| text.split_once(':'));
    let (user, password) = text.ok_or_else(malformed)?;
    Ok(Credentials::Password { user: user.to_owned(), password: password.to_owned() })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn parse(value: &str) -> Option<String> {
        let mut metadata = MetadataMap::new();
        metadata.insert("authorization", value.parse().unwrap());
        match credentials(&metadata).ok()? {
            Credentials::None => None,
            Credentials::Token(token) => Some(format!("{} bytes", token.len())),
            Credentials::Password { user, password } => Some(format!("{user} {password}")),
        }
    }

    #[test]
    fn credentials_are_read_with_and_without_padding() {
        assert_eq!(parse("Basic YW5uOmE6Yg==").as_deref(), Some("ann a:b"));
        assert_eq!(parse("basic YW5uOmE6Yg").as_deref(), Some("ann a:b"));
        assert_eq!(parse("Bearer AAAA").as_deref(), Some("3 bytes"));
        assert_eq!(parse("Bearer ???").as_deref(), Some("0 bytes"));
        for wrong in ["", "Basic", "Basic ", "Basic YW5u", "Basic /w==", "Digest AAAA"] {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}

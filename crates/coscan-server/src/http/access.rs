//! Access control of the HTTP routes.
//!
//! With passwords, users log in by HTTP Basic, then by `cookie`. Without passwords, everyone on this machine has
//! access, but not the web pages of others whose name resolves to this machine (DNS rebinding): the `Host` of a request
//! must be localhost or a loopback address.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Extension, Request, State};
use axum::http::header::{
    AUTHORIZATION, COOKIE, HOST, HeaderMap, HeaderValue, RETRY_AFTER, SET_COOKIE, WWW_AUTHENTICATE,
};
use axum::http::uri::Authority;
use axum::http::{HeaderName, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;

use super::cookie::Cookies;
use crate::listen::Place;
use crate::sql::{LoginError, Proof, SqlService};
use crate::users::User;

/// The origin of a request.
#[derive(Clone, Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    pub(super) place: Arc<Place>,
}

/// Marks a request whose sender may see the addresses of other servers.
#[derive(Clone, Copy, Debug)]
pub(super) struct SeesServers;

/// Authenticates requests.
#[derive(Clone, Debug)]
pub(super) struct Access {
    pub(super) service: Arc<SqlService>,
    pub(super) cookies: Arc<Cookies>,
    /// Whether `/metrics` needs no login from this machine.
    pub(super) local_metrics: bool,
}

/// Admits administrators only, since the dashboard shows the queries of all users.
pub(super) async fn require_administrator(
    State(access): State<Access>,
    Extension(peer): Extension<Peer>,
    request: Request,
    next: Next,
) -> Response {
    match access.admitted(&peer, request.headers()).await {
        Ok((user, _)) if !user.admin => {
            let text = "the dashboard shows the queries of all users: it is for administrators\n";
            (StatusCode::FORBIDDEN, text).into_response()
        }
        Ok((_, cookie)) => with(next.run(request).await, cookie),
        Err(refusal) => refusal,
    }
}

/// Admits users. With `local_metrics`, clients on this machine are admitted without a login. Everyone there can list
/// the open connections, so nothing is hidden from them.
pub(super) async fn require_user(
    State(access): State<Access>,
    Extension(peer): Extension<Peer>,
    mut request: Request,
    next: Next,
) -> Response {
    let is_local =
        peer.address.ip().to_canonical().is_loopback() && is_this_machine(request.headers());
    let sees_servers = if access.local_metrics && is_local {
        true
    } else {
        match access.admitted(&peer, request.headers()).await {
            // Monitoring systems send their password each time and keep no cookies.
            Ok((user, _)) => user.admin,
            Err(refusal) => return refusal,
        }
    };
    if sees_servers {
        request.extensions_mut().insert(SeesServers);
    }
    next.run(request).await
}

impl Access {
    /// The user of a request, and a new cookie unless the request has a valid one, or the refusal. The connection
    /// counts as the user's from now on.
    async fn admitted(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
    ) -> Result<(Arc<User>, Option<HeaderValue>), Response> {
        let (user, cookie) = self.user(peer, headers).await?;
        let admitted = peer.place.admit(&user);
        admitted.map_err(|error| {
            (StatusCode::SERVICE_UNAVAILABLE, format!("{error}\n")).into_response()
        })?;
        Ok((user, cookie))
    }

    /// The user of a request, and a new cookie unless the request has a valid one, or the refusal.
    async fn user(
        &self,
        peer: &Peer,
        headers: &HeaderMap,
    ) -> Result<(Arc<User>, Option<HeaderValue>), Response> {
        let users = self.service.users();
        if !users.check_passwords() {
            let user = users.find("anyone").filter(|_| is_this_machine(headers));
            let text = "without passwords, the address must be localhost or a loopback address\n";
            let refusal = || (StatusCode::MISDIRECTED_REQUEST, text).into_response();
            return Ok((user.ok_or_else(refusal)?, None));
        }
        let given = headers.get(AUTHORIZATION).and_then(basic);
        let cookies = headers.get_all(COOKIE).iter().filter_map(|cookies| cookies.to_str().ok());
        for cookies in cookies {
            let known = self.cookies.user(cookies, |name| users.find(name));
            let is_same =
                |user: &Arc<User>| given.as_ref().is_none_or(|(name, _)| *name == user.name);
            if let Some(user) = known.filter(is_same) {
                return Ok((user, None));
            }
        }
        let (name, password) = given.ok_or_else(log_in)?;
        let address = Some(peer.address.ip());
        let login = self.service.login_from(address, &name, Proof::Password(&password)).await;
        if let Err(error) = &login {
            log::info!(user = name.as_str(), address:% = peer.address; "login refused: {error}");
        }
        match login {
            Ok(session) => {
                let cookie = HeaderValue::try_from(self.cookies.set(&session.user)).ok();
                Ok((Arc::clone(&session.user), cookie))
            }
            Err(error @ LoginError::TooMany(left)) => {
                let retry = [(RETRY_AFTER, (left.as_secs() + 1).to_string())];
                Err((StatusCode::TOO_MANY_REQUESTS, retry, format!("{error}\n")).into_response())
            }
            Err(LoginError::Wrong) => Err(log_in()),
        }
    }
}

fn with(mut response: Response, cookie: Option<HeaderValue>) -> Response {
    if let Some(cookie) = cookie {
        response.headers_mut().insert(SET_COOKIE, cookie);
    }
    response
}

fn log_in() -> Response {
    let how: (HeaderName, &str) = (WWW_AUTHENTICATE, r#"Basic realm="coscan", charset="UTF-8""#);
    (StatusCode::UNAUTHORIZED, [how], "log in with a user and password of the server\n")
        .into_response()
}

/// The name and password of HTTP Basic (RFC 7617).
fn basic(header: &HeaderValue) -> Option<(String, String)> {
    let (scheme, text) = header.to_str().ok()?.split_once(' ')?;
    let text = BASE64.decode(text.trim()).ok().filter(|_| scheme.eq_ignore_ascii_case("basic"))?;
    let text = String::from_utf8(text).ok()?;
    let (name, password) = text.split_once(':')?;
    Some((name.to_owned(), password.to_owned()))
}

/// Whether the host of a request is a name of this machine that others cannot redirect.
fn is_this_machine(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Some(host) = host.to_str().ok().and_then(|host| host.parse::<Authority>().ok()) else {
        return false;
    };
    let name = host.host().trim_start_matches('[').trim_end_matches(']');
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback());
    is_loopback || name.eq_ignore_ascii_case("localhost")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    fn is_local(hosts: &[&'static str]) -> bool {
        let hosts = hosts.iter().map(|host| (HOST, HeaderValue::from_static(host)));
        is_this_machine(&hosts.collect())
    }

    #[test]
    fn only_names_that_nobody_can_give_away_are_those_of_this_machine() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1:5480", "127.1.2.3", "[::1]:5480"] {
            assert!(is_local(&[host]), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example:80", "10.0.0.1", "", "[::2]", "a b"] {
            assert!(!is_local(&[host]), "{host}");
        }
        assert!(!is_local(&[]));
        assert!(!is_local(&["localhost", "evil.example"]));
    }

    #[test]
    fn passwords_may_hold_anything() {
        let header = |text: &str| HeaderValue::from_str(text).unwrap();
        let read = basic(&header(&format!("basic {}", BASE64.encode("ann:pen:cil é"))));
        assert_eq!(read, Some(("ann".to_owned(), "pen:cil é".to_owned())));
        for wrong in ["", "Basic", "Basic !", "Bearer YW5uOng=", "Basic YW5u"] {
            assert_eq!(basic(&header(wrong)), None, "{wrong}");
        }
    }
}

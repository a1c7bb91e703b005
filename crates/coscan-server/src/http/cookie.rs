//! Login cookies, which avoid hashing a password for every request. The server keeps no list of them. A cookie holds
//! the user's name and its time of expiry, signed with a key of this process and the verifier of the user's password.
//! It becomes invalid when the server restarts or the password changes.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD as BASE64;
use ring::hmac;
use ring::rand::SystemRandom;

use crate::users::User;

/// The time for which a cookie is valid.
const LIFE: Duration = Duration::from_secs(3600);

/// Makes and checks cookies.
#[derive(Debug)]
pub(super) struct Cookies {
    key: hmac::Key,
    /// Whether the cookie is sent only over TLS, and cannot be set by other hosts.
    is_secure: bool,
}

impl Cookies {
    /// Creates a new key. Returns `None` if the system provides no random bytes.
    pub(super) fn new(is_secure: bool) -> Option<Self> {
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &SystemRandom::new()).ok()?;
        Some(Self { key, is_secure })
    }

    /// The value of `Set-Cookie` for a user.
    pub(super) fn set(&self, user: &User) -> String {
        let end = seconds() + LIFE.as_secs();
        let secure = if self.is_secure { "; Secure" } else { "" };
        let (name, value, life) = (self.name(), self.value(user, end), LIFE.as_secs());
        format!("{name}={value}; Path=/; Max-Age={life}; HttpOnly; SameSite=Strict{secure}")
    }

    /// The user named in the cookies of a request, found by `find`, if the cookie is valid now.
    pub(super) fn user<U: AsRef<User>>(
        &self,
        cookies: &str,
        find: impl FnOnce(&str) -> Option<U>,
    ) -> Option<U> {
        self.user_at(cookies, find, seconds())
    }

    fn user_at<U: AsRef<User>>(
        &self,
        cookies: &str,
        find: impl FnOnce(&str) -> Option<U>,
        now: u64,
    ) -> Option<U> {
        let mut pairs = cookies.split(';').filter_map(|pair| pair.trim().split_once('='));
        let (_, value) = pairs.find(|(name, _)| *name == self.name())?;
        let (name, rest) = value.split_once('.')?;
        let (end, tag) = rest.split_once('.')?;
        let name = String::from_utf8(BASE64.decode(name).ok()?).ok()?;
        let end: u64 = end.parse().ok().filter(|end| now < *end)?;
        let user = find(&name)?;
        hmac::verify(&self.key, &signed(user.as_ref(), end), &BASE64.decode(tag).ok()?).ok()?;
        Some(user)
    }

    fn value(&self, user: &User, end: u64) -> String {
        let tag = hmac::sign(&self.key, &signed(user, end));
        format!("{}.{end}.{}", BASE64.encode(&user.name), BASE64.encode(tag))
    }

    /// The name of the cookie. Browsers accept a name with the secure prefix only from this host, over TLS.
    fn name(&self) -> &'static str {
        if self.is_secure { "__Host-coscan" } else { "coscan" }
    }
}

/// The signed bytes. Names contain no zero.
fn signed(user: &User, end: u64) -> Vec<u8> {
    let verifier = user.verifier().map(ToString::to_string).unwrap_or_default();
    format!("{}\0{end}\0{verifier}", user.name).into_bytes()
}

fn seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use std::sync::Arc;

    use super::*;
    use crate::users::{Users, Verifier, entry};

    fn users(password: &str) -> Users {
        let verifier = Verifier::of_password(password).unwrap();
        Users::parse(&(entry("ann", &verifier, &[]) + &entry("bob", &verifier, &[]))).unwrap()
    }

    #[test]
    fn a_cookie_is_good_for_its_user_until_its_end_or_a_new_password() {
        let (cookies, users, other) = (Cookies::new(false).unwrap(), users("a"), users("b"));
        let ann = users.find("ann").unwrap();
        let good = format!("x=y; coscan={}", cookies.value(&ann, 100));
        let check = |cookies: &Cookies, text: &str, users: &Users, now| {
            let found = cookies.user_at(text, |name| users.find(name), now);
            found.map(|user: Arc<User>| user.name.clone())
        };
        assert_eq!(check(&cookies, &good, &users, 99).as_deref(), Some("ann"));
        assert_eq!(check(&cookies, &good, &users, 100), None);
        assert_eq!(check(&cookies, &good, &other, 99), None);
        assert_eq!(check(&Cookies::new(false).unwrap(), &good, &users, 99), None);
        assert_eq!(check(&Cookies::new(true).unwrap(), &good, &users, 99), None);
        let bob = BASE64.encode("bob");
        for wrong in [
            good.replace(&BASE64.encode("ann"), &bob),
            good.replace(".100.", ".101."),
            good[..good.len() - 2].to_owned(),
            "coscan=".to_owned(),
            String::new(),
        ] {
            assert_eq!(check(&cookies, &wrong, &users, 99), None, "{wrong}");
        }
    }

    #[test]
    fn scripts_and_other_sites_do_not_get_the_cookie() {
        let ann = users("a").find("ann").unwrap();
        let set = Cookies::new(true).unwrap().set(&ann);
        assert!(set.starts_with("__Host-coscan=") && set.contains("; Path=/;"), "{set}");
        assert!(set.ends_with("; HttpOnly; SameSite=Strict; Secure"), "{set}");
        assert!(Cookies::new(false).unwrap().set(&ann).ends_with("SameSite=Strict"));
    }
}

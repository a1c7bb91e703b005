//! Dialogues of SCRAM.
#![allow(clippy::unwrap_used)]
use std::num::NonZeroU32;

use super::*;
use crate::users::verifier::MockVerifiers;

const CLIENT_FIRST: &[u8] = b"n,,n=user,r=rOprNGfwEbeRWgbNEkqO";
const NOT_BOUND: ChannelBinding<'_> = ChannelBinding::No { was_offered: false };
const SERVER_NONCE: &str = "%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0";
const CLIENT_FINAL: &str = "c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,\
    p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ=";

fn pencil() -> Verifier {
    let salt = BASE64.decode("W22ZaJ0SNY7soEsUEjb6gQ==").unwrap();
    Verifier::with_salt("pencil", salt, NonZeroU32::new(4096).unwrap())
}

#[test]
fn the_example_of_rfc_7677() {
    let scram = Scram::with_nonce(CLIENT_FIRST, "user", pencil(), SERVER_NONCE, NOT_BOUND).unwrap();
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
    assert_eq!(finish(&other), Err(ScramError::ChannelBindingFailed));
    let scram = Scram::with_nonce(
        CLIENT_FIRST,
        "user",
        MockVerifiers::like(std::iter::once(&pencil())).verifier("user"),
        SERVER_NONCE,
        NOT_BOUND,
    );
    let refused = scram.unwrap().finish(CLIENT_FINAL.as_bytes());
    assert_eq!(refused.map(|_| ()), Err(ScramError::WrongProof));
}

#[test]
fn malformed_first_messages_are_refused() {
    let users = Users::parse("").unwrap();
    let start =
        |message: &[u8]| Scram::start(&users, "user", message, NOT_BOUND).map(|_| ()).unwrap_err();
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
    let offered = ChannelBinding::No { was_offered: true };
    for (flag, bound, is_agreed) in [
        ("n", NOT_BOUND, true),
        ("y", NOT_BOUND, true),
        ("n", offered, true),
        ("y", offered, false),
        ("n", ChannelBinding::To(b"hash"), false),
        ("p=tls-unique", ChannelBinding::To(b"hash"), false),
        ("p=tls-server-end-point", ChannelBinding::To(b"hash"), true),
        ("p=tls-server-end-point", offered, false),
    ] {
        let first = format!("{flag},,n=user,r=abc");
        let started = Scram::start(&users, "user", first.as_bytes(), bound);
        let expected = (!is_agreed).then_some(ScramError::ChannelBindingFailed);
        assert_eq!(started.err(), expected, "{flag} {bound:?}");
    }
}

#[test]
fn a_login_over_another_certificate_is_refused() {
    let first = CLIENT_FIRST.strip_prefix(b"n").unwrap();
    let first = [b"p=tls-server-end-point", first].concat();
    let bound = ChannelBinding::To(b"ours");
    for (sent, expected) in
        [("ours", ScramError::WrongProof), ("other", ScramError::ChannelBindingFailed)]
    {
        let scram = Scram::with_nonce(&first, "user", pencil(), SERVER_NONCE, bound).unwrap();
        let binding = BASE64.encode(format!("p=tls-server-end-point,,{sent}"));
        let last = CLIENT_FINAL.replace("biws", &binding);
        assert_eq!(scram.finish(last.as_bytes()).map(|_| ()), Err(expected), "{sent}");
    }
}

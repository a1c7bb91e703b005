#![allow(clippy::unwrap_used)]
use super::*;

fn from(last: u8) -> Option<IpAddr> {
    Some(IpAddr::from([10, 0, 0, last]))
}

/// Fails until logins are refused. Returns the pause.
fn guess(logins: &FailedLogins, name: &str, address: Option<IpAddr>, now: Instant) -> Duration {
    for _ in 0..FREE_FAILURES {
        assert_eq!(logins.check_at(name, address, now), Ok(()));
        logins.settle_at(name, address, false, now).unwrap();
    }
    logins.check_at(name, address, now).unwrap_err()
}

#[test]
fn pauses_grow_end_and_are_forgotten() {
    let (logins, mut now) = (FailedLogins::default(), Instant::now());
    let mut pauses = vec![guess(&logins, "ann", from(1), now)];
    for _ in 0..8 {
        now += *pauses.last().unwrap();
        logins.settle_at("ann", from(1), false, now).unwrap();
        pauses.push(logins.check_at("ann", from(1), now).unwrap_err());
    }
    assert_eq!(pauses[..3], [PAUSE, PAUSE * 2, PAUSE * 4]);
    assert_eq!(*pauses.last().unwrap(), PAUSE_MAX);
    now += FORGOTTEN_AFTER + PAUSE;
    guess(&logins, "ann", from(1), now);
    now += PAUSE;
    logins.settle_at("ann", from(1), true, now).unwrap();
    assert_eq!(guess(&logins, "ann", from(1), now), PAIR_FORGETS_ONE_IN, "as a pair");
}

#[test]
fn failures_count_by_name_and_by_address() {
    let (logins, now) = (FailedLogins::default(), Instant::now());
    guess(&logins, "ann", from(1), now);
    assert!(logins.check_at("bob", from(1), now).is_err(), "the same address");
    assert!(logins.check_at("ann", from(2), now).is_err(), "the same name");
    assert!(logins.check_at("ann", None, now).is_err(), "the same name");
    assert_eq!(logins.check_at("bob", from(2), now), Ok(()));
    assert_eq!(logins.check_at("bob", None, now), Ok(()));
    assert_eq!(logins.counts(), (u64::from(FREE_FAILURES), 4));
}

#[test]
fn an_ipv6_network_is_one_address() {
    let (logins, now) = (FailedLogins::default(), Instant::now());
    let of = |text: &str| Some(text.parse::<IpAddr>().unwrap());
    guess(&logins, "ann", of("2001:db8::1"), now);
    assert!(logins.check_at("bob", of("2001:db8::ffff:2"), now).is_err());
    assert_eq!(logins.check_at("bob", of("2001:db8:0:1::1"), now), Ok(()));
}

#[test]
fn strangers_do_not_keep_a_user_out() {
    let (logins, now) = (FailedLogins::default(), Instant::now());
    logins.settle_at("ann", from(1), true, now).unwrap();
    guess(&logins, "ann", from(2), now);
    logins.settle_at("bob", from(1), false, now).unwrap();
    assert_eq!(logins.check_at("ann", from(1), now), Ok(()));
    guess(&logins, "ann", from(1), now);
}

#[test]
fn the_logins_of_a_user_are_no_free_guesses_for_others_behind_the_same_address() {
    let (logins, start) = (FailedLogins::default(), Instant::now());
    logins.settle_at("ann", from(1), true, start).unwrap();
    let (mut guesses, mut kept_out, minutes) = (0, 0, 10);
    for second in 0..minutes * 60 {
        let now = start + Duration::from_secs(second);
        // Ann logs in ten times before each guess.
        kept_out +=
            (0..10).filter(|_| logins.settle_at("ann", from(1), true, now).is_err()).count();
        guesses += u64::from(logins.settle_at("ann", from(1), false, now).is_ok());
    }
    let forgotten = minutes * 60 / PAIR_FORGETS_ONE_IN.as_secs();
    assert_eq!(guesses, u64::from(FREE_FAILURES) - 1 + forgotten);
    assert!(kept_out > 0);
    assert_eq!(logins.check_at("ann", from(2), start), Ok(()), "elsewhere she is let in");
    let after = start + Duration::from_secs(minutes * 60) + PAIR_FORGETS_ONE_IN;
    assert_eq!(logins.check_at("ann", from(1), after), Ok(()));
}

#[test]
fn slow_guesses_keep_nobody_out() {
    let (logins, mut now) = (FailedLogins::default(), Instant::now());
    logins.settle_at("ann", from(1), true, now).unwrap();
    for _ in 0..1000 {
        now += PAIR_FORGETS_ONE_IN;
        logins.settle_at("ann", from(1), false, now).unwrap();
        logins.settle_at("ann", from(1), true, now).unwrap();
    }
}

#[test]
fn a_success_does_not_clear_the_failures_of_its_name_and_address() {
    let (logins, mut now) = (FailedLogins::default(), Instant::now());
    now += guess(&logins, "ann", from(1), now);
    logins.settle_at("ann", from(1), true, now).unwrap();
    logins.settle_at("ann", from(2), true, now).unwrap();
    logins.settle_at("ann", None, true, now).unwrap();
    logins.settle_at("ann", from(3), false, now).unwrap();
    assert_eq!(logins.check_at("ann", from(3), now), Err(PAUSE * 2), "the same name");
    logins.settle_at("bob", from(1), false, now).unwrap();
    assert_eq!(logins.check_at("carl", from(1), now), Err(PAUSE * 2), "the same address");
    assert_eq!(logins.check_at("ann", from(1), now), Ok(()));
}

#[test]
fn guesses_at_once_are_counted_before_one_succeeds() {
    let (logins, now) = (FailedLogins::default(), Instant::now());
    guess(&logins, "ann", from(1), now);
    assert!(logins.settle_at("ann", from(1), true, now).is_err());
    logins.settle_at("ann", from(1), true, now + PAUSE).unwrap();
}

#[test]
fn memory_has_a_bound_and_keeps_those_who_fail_most() {
    let (logins, now) = (FailedLogins::default(), Instant::now());
    guess(&logins, "ann", None, now);
    for stranger in 0..ENTRIES_MAX + 10 {
        let name = stranger.to_string();
        logins.settle_at(&name, None, false, now).unwrap();
    }
    assert_eq!(logins.tracked().names.len(), ENTRIES_MAX);
    assert!(logins.check_at("ann", None, now).is_err());
    for user in 0..ENTRIES_MAX + 10 {
        let now = now + Duration::from_nanos(user as u64);
        logins.settle_at(&user.to_string(), from(1), true, now).unwrap();
    }
    assert_eq!(logins.tracked().pairs.len(), ENTRIES_MAX);
    // This is the pair that was used least recently.
    let now = now + PAUSE;
    guess(&logins, "10", from(1), now);
    for user in ["ann", "bob"] {
        logins.settle_at(user, from(2), true, now).unwrap();
    }
    assert!(logins.check_at("10", from(1), now).is_err(), "those with failures stay");
}

#[test]
fn filled_places_give_no_free_guesses() {
    let (logins, now) = (FailedLogins::default(), Instant::now());
    let address = |network: usize| {
        Some(IpAddr::from(Ipv6Addr::from((0x2001_0db8_u128 << 96) | (network as u128) << 64)))
    };
    for junk in 0..ENTRIES_MAX {
        guess(&logins, &format!("junk {junk}"), address(junk), now);
    }
    // Each would have the other's entries dropped, and start again.
    let mut passed = 0;
    for turn in 0..1000 {
        let (name, from) =
            [("ann", address(ENTRIES_MAX)), ("bob", address(ENTRIES_MAX + 1))][turn % 2];
        if logins.check_at(name, from, now).is_ok() {
            logins.settle_at(name, from, false, now).unwrap();
            passed += 1;
        }
    }
    assert!(passed <= 2 * FREE_FAILURES, "{passed} guesses passed");
}

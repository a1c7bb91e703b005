use super::*;

const KEY: SliceKey = SliceKey { file: FileId(0), chunk: ChunkIndex(0), column: 0 };

fn cache_expected_by(workers: usize) -> Arc<DecodeCache> {
    let cache = Arc::new(DecodeCache::default());
    (0..workers).for_each(|_| cache.expect(KEY));
    cache
}

fn ended(cache: &DecodeCache) -> OwnedNotified {
    match cache.look_up(KEY) {
        Lookup::Decoding(ended) => ended,
        _ => panic!("a worker decodes it"),
    }
}

/// Waits, but not for ever: the clock is paused, so the hour passes as soon as no other task can proceed.
async fn is_told(ended: OwnedNotified) -> bool {
    tokio::time::timeout(std::time::Duration::from_secs(3600), ended).await.is_ok()
}

#[tokio::test(start_paused = true)]
async fn a_waiting_worker_is_notified_although_another_began_before_it_listened() {
    let cache = cache_expected_by(3);
    let first = cache.begin(KEY);
    let told = ended(&cache);
    drop(first);
    let second = cache.begin(KEY).expect("it is not being decoded");
    assert!(is_told(told).await);
    assert!(cache.begin(KEY).is_none(), "one at a time");
    let told = ended(&cache);
    second.finish(Slice::from([]), 0);
    assert!(is_told(told).await);
    assert!(matches!(cache.look_up(KEY), Lookup::Ready(_)));
}

#[test]
fn a_slice_stays_while_workers_expect_it() {
    let cache = cache_expected_by(2);
    cache.begin(KEY).expect("it is not being decoded").finish(Slice::from([]), 100);
    assert!(!cache.taken(KEY), "another expects it");
    assert!(cache.remove_unexpected(KEY).is_none() && cache.unexpected_bytes() == 0);
    assert!(cache.taken(KEY));
    assert_eq!(cache.unexpected_bytes(), 100);
    assert!(cache.remove_unexpected(KEY).is_some());
    assert_eq!(cache.unexpected_bytes(), 0);
    assert!(cache.lock().entries.is_empty());
}

#[test]
fn an_abandoned_decoding_leaves_nothing_when_no_worker_expects_it() {
    let cache = cache_expected_by(1);
    let decoding = cache.begin(KEY);
    assert!(!cache.taken(KEY));
    drop(decoding);
    assert!(cache.lock().entries.is_empty());
}

fn key(chunk: u32) -> SliceKey {
    SliceKey { chunk: ChunkIndex(chunk), ..KEY }
}

/// Uses a slice of 100 bytes as scans do: it is expected, decoded if it is not there, taken, and needed no more.
fn use_slice(cache: &Arc<DecodeCache>, key: SliceKey, has_room: impl FnOnce(u64) -> bool) {
    cache.expect(key);
    if let Some(decoding) = cache.begin(key) {
        decoding.finish(Slice::from([]), 100);
    }
    assert!(cache.taken(key));
    match cache.retire(key) {
        Retired::UsedBefore { due } if has_room(due) => cache.keep_idle(key, due),
        _ => drop(cache.remove_unexpected(key)),
    }
}

/// Makes room as the owner of the cache does, for at most `slices_max` idle slices.
fn makes_room(cache: &DecodeCache, due: u64, slices_max: u64) -> bool {
    while cache.idle_bytes() >= 100 * slices_max {
        let Some(other) = cache.first_to_drop(Some(due)) else { return false };
        cache.remove_unexpected(other);
    }
    true
}

#[test]
fn a_slice_is_idle_from_its_second_use_on() {
    let cache = Arc::new(DecodeCache::default());
    use_slice(&cache, KEY, |_| true);
    assert!(cache.idle_bytes() == 0 && cache.lock().entries.is_empty());
    use_slice(&cache, KEY, |_| true);
    assert_eq!((cache.idle_bytes(), cache.unexpected_bytes()), (100, 100));
    cache.expect(KEY);
    assert_eq!(cache.idle_bytes(), 0, "a worker expects it");
    assert!(cache.first_to_drop(None).is_none());
    assert!(cache.taken(KEY));
    assert_eq!(cache.retire(KEY), Retired::UsedBefore { due: 5 });
}

#[test]
fn of_slices_that_are_used_in_turn_a_part_stays() {
    let cache = Arc::new(DecodeCache::default());
    for round in 0..10 {
        let before: Vec<_> = cache.lock().idle_keys();
        for chunk in 0..12 {
            use_slice(&cache, key(chunk), |due| makes_room(&cache, due, 5));
        }
        let after = cache.lock().idle_keys();
        assert!(round < 1 || after.len() == 5, "{after:?}");
        assert!(round < 3 || after == before, "{before:?}, {after:?}");
    }
}

#[test]
fn slices_that_are_overdue_give_way_and_others_do_not() {
    let cache = Arc::new(DecodeCache::default());
    let uses = |chunks: std::ops::Range<u32>| {
        chunks.for_each(|chunk| use_slice(&cache, key(chunk), |due| makes_room(&cache, due, 3)));
    };
    (0..3).for_each(|_| uses(0..3));
    (0..2).for_each(|_| uses(10..12));
    assert_eq!(cache.lock().idle_keys(), [0, 1, 2].map(key), "it is too soon");
    (0..6).for_each(|_| uses(10..13));
    assert_eq!(cache.lock().idle_keys(), [10, 11, 12].map(key));
}

#[test]
fn a_scan_that_decodes_for_itself_collects_what_was_used_before() {
    let cache = Arc::new(DecodeCache::default());
    let array: ArrayRef = Arc::new(arrow_array::Int64Array::from(vec![1, 2, 3]));
    let use_alone = |announced: &mut Vec<SliceKey>| {
        let mut unshared_use = cache.use_alone(KEY);
        (0..2).for_each(|_| unshared_use.add(&array));
        unshared_use.end(|key| announced.push(key));
    };
    let mut announced = Vec::new();
    use_alone(&mut announced);
    assert!(announced.is_empty() && cache.lock().entries.is_empty(), "the first use");
    use_alone(&mut announced);
    assert_eq!(announced, [KEY]);
    assert_eq!(cache.idle_bytes(), 24, "the same buffer twice");
    use_alone(&mut announced);
    assert_eq!(announced, [KEY], "it is there");
    cache.remove_unexpected(KEY);

    let mut given_up = cache.use_alone(KEY);
    given_up.add(&array);
    assert!(given_up.due().is_some());
    assert_eq!(cache.stop_collecting().len(), 1);
    given_up.add(&array);
    assert!(given_up.due().is_none());
    given_up.end(|_| panic!("it was given up"));
    assert_eq!(Arc::strong_count(&array), 1);
}

#[test]
fn idle_bytes_are_those_of_the_slices_that_are_idle() {
    let cache = Arc::new(DecodeCache::default());
    let mut random = coscan_core::SplitMix64(7);
    let (mut expected, mut decodings) = (Vec::new(), Vec::new());
    for _ in 0..20_000 {
        let key = key(random.below(6) as u32);
        match random.below(8) {
            0 | 1 => {
                cache.expect(key);
                expected.push(key);
            }
            2 if expected.contains(&key) => decodings.extend(cache.begin(key)),
            3 if !decodings.is_empty() => {
                let at = random.below(decodings.len() as u64) as usize;
                let decoding = decodings.swap_remove(at);
                match random.below(3) {
                    0 => drop(decoding),
                    _ => decoding.finish(Slice::from([]), 1 + random.below(100)),
                }
            }
            4 if !expected.is_empty() => {
                let at = random.below(expected.len() as u64) as usize;
                cache.taken(expected.swap_remove(at));
            }
            5 => {
                if let Retired::UsedBefore { due } = cache.retire(key) {
                    cache.keep_idle(key, due);
                }
            }
            6 => drop(cache.remove_unexpected(key)),
            _ => cache.use_alone(key).end(|_| ()),
        }
        let state = cache.lock();
        let idle = state.entries.values().filter(|entry| entry.due.is_some());
        assert_eq!(cache.idle_bytes(), idle.map(Entry::unexpected_bytes).sum::<u64>());
        let all = state.entries.values().map(Entry::unexpected_bytes);
        assert_eq!(state.unexpected_bytes, all.sum::<u64>());
    }
}

#[test]
fn a_slice_that_two_queries_in_a_row_use_is_not_overdue_before_the_next_two() {
    let cache = Arc::new(DecodeCache::default());
    for round in 0..4 {
        (0..2).for_each(|_| use_slice(&cache, KEY, |_| true));
        for chunk in 1..100 {
            assert!(round < 1 || cache.first_to_drop(Some(u64::MAX)).is_none(), "{round}, {chunk}");
            use_slice(&cache, key(chunk), |_| false);
        }
    }
}

#[test]
fn a_slice_is_collected_while_another_worker_expects_it_no_longer() {
    let cache = Arc::new(DecodeCache::default());
    let is_done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !is_done.load(std::sync::atomic::Ordering::Relaxed) {
                cache.expect(KEY);
                std::hint::spin_loop();
                cache.taken(KEY);
            }
        });
        let collected = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            for _ in 0..100_000 {
                cache.use_alone(KEY).end(|_| ());
                drop(cache.remove_unexpected(KEY));
            }
        }));
        is_done.store(true, std::sync::atomic::Ordering::Relaxed);
        assert!(collected.is_ok());
    });
}

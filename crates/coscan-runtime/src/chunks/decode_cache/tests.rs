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

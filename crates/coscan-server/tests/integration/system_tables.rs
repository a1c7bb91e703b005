//! The running scans that users see.

use crate::support::server::start;
use futures::StreamExt;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_see_their_own_scans_administrators_all() {
    let running = start().await;
    let (ann, bob) = (running.login("ann").await, running.login("bob").await);
    let root = running.login("root").await;
    // This is more than fits between the server and a client that does not read.
    let sql = "SELECT id, repeat(word, 500) FROM numbers";
    let none: [i64; 0] = [];
    let mut rows = Box::pin(ann.query_raw(sql, none).await.unwrap());
    rows.next().await.unwrap().unwrap();
    let scans = "SELECT query_id, table_name, columns, chunks, chunks_done, waits_for, why, \
                 bytes_read + bytes_reused FROM system.scans ORDER BY chunks_done";
    // This is another connection of Ann.
    let own = running.login("ann").await.query(scans, &[]).await.unwrap();
    assert!(!own.is_empty());
    let id = "SELECT query_id FROM system.queries WHERE state = 'running' AND sql LIKE '%repeat%s'";
    let id: i64 = root.query_one(id, &[]).await.unwrap().get(0);
    for scan in &own {
        assert_eq!(scan.get::<_, Option<i64>>(0), Some(id));
        assert_eq!((scan.get::<_, &str>(1), scan.get::<_, &str>(2)), ("numbers", "id, word"));
        let (chunks, done): (i64, i64) = (scan.get(3), scan.get(4));
        assert!(0 <= done && done <= chunks && chunks > 0, "{done} of {chunks}");
        assert!(!scan.get::<_, &str>(5).is_empty() && !scan.get::<_, &str>(6).is_empty());
    }
    assert!(own.iter().any(|scan| scan.get::<_, i64>(7) > 0));
    assert_eq!(root.query(scans, &[]).await.unwrap().len(), own.len());
    assert_eq!(bob.query(scans, &[]).await.unwrap().len(), 0);
    drop(rows);
}

//! Expensive statements that a user may send. Each costs much for its length, or did once.

/// All of the statements. Those that read `numbers` need a user who may read it.
pub(crate) fn statements() -> Vec<String> {
    let nested = |levels: usize, open: &str, middle: &str, close: &str| {
        format!("SELECT {}{middle}{}", open.repeat(levels), close.repeat(levels))
    };
    let doubled = |levels: usize, expression: &str, join: &str| {
        let next =
            |n: usize| format!(", c{} AS (SELECT {expression} AS x FROM c{n} a {join})", n + 1);
        let next = |n: usize| next(n).replace("PREVIOUS", &format!("c{n}"));
        let queries: String = (0..levels).map(next).collect();
        format!("WITH c0 AS (SELECT 'x' AS x){queries} SELECT max(length(x)) FROM c{levels}")
    };
    let joins = |count: usize| {
        let tables: String =
            (1..count).map(|n| format!(" JOIN (VALUES (1)) t{n}(x) USING (x)")).collect();
        format!("SELECT x FROM (VALUES (1)) t0(x){tables}")
    };
    let plain = [
        "SELECT levenshtein(repeat('a', 200000), repeat('b', 200000))",
        "SELECT levenshtein(repeat('a', 200000) || word, repeat('b', 200000)) FROM numbers LIMIT 1",
        "SELECT length(repeat('x', 1000000000))",
        "SELECT max(length(repeat(word, 1000000))) FROM numbers",
        "SELECT array_length(range(0, 800000000))",
        "SELECT count(*) FROM (SELECT unnest(range(0, 1000000)) AS u, repeat('x', 16000000) AS x)",
        "SELECT count(DISTINCT a.id + b.id) FROM numbers a, numbers b",
        "SELECT a.* FROM numbers a, numbers b, numbers c ORDER BY a.word, b.id, c.id",
        "SELECT count(*) FROM generate_series(1, 1000000000) a, generate_series(1, 1000000000) b WHERE a.a < b.b",
        "SELECT array_agg(a.word || b.word) FROM numbers a, numbers b",
        "SELECT string_agg(a.word, 'x') FROM numbers a, numbers b GROUP BY a.id % 3",
        "SELECT string_agg(word, repeat('x', 1000000)) FROM numbers",
        "SELECT array_agg(id) OVER (ORDER BY id) FROM numbers",
        "SELECT sum(id) OVER (ORDER BY id ROWS BETWEEN 20000 PRECEDING AND 20000 FOLLOWING) FROM numbers",
        "WITH RECURSIVE r AS (SELECT 1 AS x UNION ALL SELECT x + 1 FROM r) SELECT count(*) FROM r",
        "WITH RECURSIVE r AS (SELECT 'x' AS x UNION ALL SELECT x || x FROM r) SELECT max(length(x)) FROM r",
        "SELECT count(*) FROM numbers WHERE repeat(word, 10000) LIKE '%a%b%c%d%e%'",
        "SELECT regexp_count(repeat(word, 1000), '(w*)*(o*)*[a-z]{1,200}x') FROM numbers",
        "SELECT regexp_replace(repeat('a', 1000000), 'a', repeat('b', 1000000), 'g')",
        "SELECT count(*) FROM numbers a WHERE EXISTS (SELECT 1 FROM numbers b WHERE b.id * a.id % 7 > a.id)",
        "SELECT 1 FROM numbers GROUP BY CUBE (id, id+1, id+2, id+3, id+4, id+5, id+6, id+7, id+8, id+9, id+10)",
        "SELECT lpad(word, 1000000000), rpad(word, 1000000000) FROM numbers",
        "SELECT array_has_all(range(0, 2000000), range(0, 2000000))",
    ];
    let mut statements = plain.map(str::to_owned).to_vec();
    statements.extend([
        nested(31, "quote_literal(", "''''", ")"),
        nested(24, "like_escape(", r"'\\'", ", '!')"),
        nested(45, "abs(", "1", ")"),
        nested(45, "ceil(", "1 1", ")"),
        nested(48, "(", "1", ")"),
        nested(30, "coalesce(NULL, ", "1", ")"),
        doubled(22, "a.x", "CROSS JOIN PREVIOUS b"),
        doubled(9, "a.x", "CROSS JOIN PREVIOUS b"),
        doubled(40, "x || x", ""),
        doubled(40, "concat(x, x, x)", ""),
        joins(160),
        joins(400),
        format!("SELECT 1{}", " UNION SELECT 1".repeat(240)),
        format!("SELECT id FROM numbers WHERE id IN (1{})", ", 1".repeat(150_000)),
        format!("SELECT 1{}", " + 1".repeat(900)),
        format!("SELECT {}1 AS z FROM numbers", "id + 1, ".repeat(5_000)),
        format!("SELECT '{}' FROM numbers", "x".repeat(900_000)),
    ]);
    statements
}

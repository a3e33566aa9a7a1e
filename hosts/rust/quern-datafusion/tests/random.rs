// SPDX-License-Identifier: Apache-2.0
//! Random queries with and without Quern. `QUERN_TEST_SEED` and `QUERN_TEST_CASES` of the environment choose others.

mod common;

use common::{Random, Rows, Setting, answer, nodes, sessions};

/// Columns of a table, with what may be asked of them.
struct Column {
    name: &'static str,
    /// "i" integers, "d" decimals, "s" strings, "t" dates, "f" floats.
    kind: char,
}

const A: &[Column] = &[
    Column { name: "a.k", kind: 'i' },
    Column { name: "a.x", kind: 'i' },
    Column { name: "a.s", kind: 's' },
    Column { name: "a.m", kind: 'd' },
    Column { name: "a.day", kind: 't' },
    Column { name: "a.f", kind: 'f' },
    Column { name: "a.b8", kind: 'i' },
    Column { name: "a.i16", kind: 'i' },
    Column { name: "a.u32", kind: 'i' },
];
const B: &[Column] =
    &[Column { name: "b.k", kind: 'i' }, Column { name: "b.y", kind: 'i' }, Column { name: "b.s", kind: 's' }];
const C: &[Column] = &[Column { name: "c.y", kind: 'i' }, Column { name: "c.d", kind: 'd' }];

const JOINS: &[&str] = &["join", "join", "left join", "right join", "full join"];
const ON_B: &[&str] = &[
    "a.k = b.k",
    "a.x = b.y",
    "a.s = b.s",
    "a.k = b.k and a.x = b.y",
    "a.k = b.k and a.x < b.y",
    "a.s = b.s and a.k <> b.k",
    "a.k is not distinct from b.k and a.s = b.s",
    "a.k + 1 = b.k",
    "a.k = b.k and a.x + 3 < b.y",
    "a.k = b.k and a.x + b.y > 40",
    "a.x = b.y and (a.s < b.s or a.k > 50) and a.k <> b.k",
];
const ON_C: &[&str] = &["b.y = c.y", "a.x = c.y", "a.m = c.d", "b.y = c.y and a.m < c.d"];

fn one<'a, T>(random: &mut Random, list: &'a [T]) -> &'a T {
    &list[usize::try_from(random.below(list.len() as u64)).unwrap_or(0)]
}

fn pick(random: &mut Random, columns: &[&'static Column]) -> &'static Column {
    columns[usize::try_from(random.below(columns.len() as u64)).unwrap_or(0)]
}

fn value(random: &mut Random, column: &Column) -> String {
    let name = column.name;
    let number = random.below(40);
    match (column.kind, random.below(5)) {
        ('i', 0) => format!("{name} + {number}"),
        ('i', 1) => format!("case when {name} > {number} then {name} else {number} end"),
        ('i', 2) => format!("{name} % 7"),
        ('d', 0) => format!("{name} * (1 - {name})"),
        ('d', 1) => format!("{name} + 0.5"),
        ('t', 0) => format!("date_part('year', {name})"),
        ('t', 1) => format!("date_part('month', {name})"),
        _ => name.to_owned(),
    }
}

fn condition(random: &mut Random, column: &Column) -> String {
    let name = column.name;
    let number = random.below(40);
    let sign = one(random, &["=", "<>", "<", "<=", ">", ">="]);
    match (column.kind, random.below(6)) {
        (_, 0) => format!("{name} is {}null", one(random, &["", "not "])),
        ('i', 1) => format!("{name} in ({number}, {}, {})", random.below(40), random.below(40)),
        ('i', 2) => format!("{name} * 2 {sign} {number} + {name}"),
        ('i', _) => format!("{name} {sign} {number}"),
        ('d', _) => format!("{name} {sign} 0.{number:02}"),
        ('s', 1 | 2) => format!("{name} {}like '%{}%'", one(random, &["", "not "]), random.below(10)),
        ('s', 3) => format!("{name} in ('w1', 'w{}', 'nothing')", random.below(12)),
        ('s', _) => format!("{name} {sign} 'w{}'", random.below(12)),
        ('t', _) => format!("{name} {sign} date '1995-0{}-11'", 1 + random.below(9)),
        _ => format!("{name} {sign} {number}.5"),
    }
}

fn conditions(random: &mut Random, columns: &[&'static Column]) -> String {
    let mut parts = vec![];
    for _ in 0..random.below(4) {
        let (first, second) = (pick(random, columns), pick(random, columns));
        let (part, other) = (condition(random, first), condition(random, second));
        parts.push(match random.below(4) {
            0 => format!("({part} or {other})"),
            1 => format!("not ({part})"),
            _ => part,
        });
    }
    if parts.is_empty() { "true".to_owned() } else { parts.join(" and ") }
}

fn aggregate(random: &mut Random, columns: &[&'static Column]) -> String {
    let column = pick(random, columns);
    let argument = value(random, column);
    let call = match (column.kind, random.below(5)) {
        (_, 0) => "count(*)".to_owned(),
        ('f', _) => format!("sum({argument})"),
        (_, 1) => format!("count({argument})"),
        ('s' | 't', 2) => format!("min({})", column.name),
        ('s' | 't', _) => format!("max({})", column.name),
        (_, 2) => format!("avg({argument})"),
        (_, 3) => format!("max({argument})"),
        _ => format!("sum({argument})"),
    };
    let column = pick(random, columns);
    if random.below(5) == 0 { format!("{call} filter (where {})", condition(random, column)) } else { call }
}

fn query(random: &mut Random) -> String {
    let mut columns: Vec<&'static Column> = A.iter().collect();
    let mut from = "a".to_owned();
    if random.below(3) != 0 {
        from = format!("{from} {} b on {}", one(random, JOINS), one(random, ON_B));
        columns.extend(B);
        if random.below(3) == 0 {
            from = format!("{from} {} c on {}", one(random, JOINS), one(random, ON_C));
            columns.extend(C);
        }
    }
    let mut wanted = conditions(random, &columns);
    let further = match random.below(10) {
        0 | 1 => {
            let not = one(random, &["", "not "]);
            format!(" and {not}exists (select 1 from b i where i.k = a.k and i.y <> a.x)")
        }
        2 | 3 => format!(" and a.k in (select k from b where y > {})", random.below(40)),
        4 => {
            // With nulls among the values, without them, and without values.
            let values = one(random, &["y > 5 or y is null", "y > 5", "y > 1000", "true"]);
            format!(" and a.x not in (select y from b where {values})")
        }
        5 => {
            let not = one(random, &["", "not "]);
            format!(" and {not}(a.x in (select y from b where y > {}) or a.k < 30)", random.below(40))
        }
        6 => " and (a.s = 'w1' or exists (select 1 from b i where i.k = a.k and i.y <> a.x))".to_owned(),
        _ => String::new(),
    };
    wanted += &further;
    let exact: Vec<&'static Column> = columns.iter().copied().filter(|column| column.kind != 'f').collect();
    let mut outputs = vec![];
    for _ in 0..=random.below(3) {
        let column = pick(random, &exact);
        outputs.push(value(random, column));
    }
    outputs.dedup();
    let mut tail = String::new();
    if random.below(3) != 0 {
        let groups: Vec<_> = (1..=outputs.len()).map(|number| number.to_string()).collect();
        let functions: Vec<_> = (0..=random.below(3)).map(|_| aggregate(random, &columns)).collect();
        if random.below(5) == 0 {
            outputs = functions;
        } else {
            tail = format!(" group by {}", groups.join(", "));
            outputs.extend(functions);
        }
    }
    if random.below(3) == 0 {
        // By every column, so that the order is one.
        let order: Vec<_> = (1..=outputs.len())
            .map(|number| format!("{number}{}", one(random, &["", " desc", " nulls first", " desc nulls last"])))
            .collect();
        tail = format!("{tail} order by {}", order.join(", "));
        if random.below(2) == 0 {
            tail = format!("{tail} limit {}", 1 + random.below(30));
        }
    }
    let named: Vec<_> = outputs.iter().enumerate().map(|(number, text)| format!("{text} as c{number}")).collect();
    format!("select {} from {from} where {wanted}{tail}", named.join(", "))
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(default)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_queries() {
    let seed = setting("QUERN_TEST_SEED", 1);
    let mut random = Random(seed);
    let (mut replaced, mut failed) = (0, 0);
    for case in 0..setting("QUERN_TEST_CASES", 120) {
        let partitions = usize::try_from(1 + random.below(3)).unwrap_or(1);
        let batch_rows = *one(&mut random, &[64, 1000, 8192]);
        let rows = *one(&mut random, &[Rows { a: 300, b: 60, c: 20 }, Rows { a: 40, b: 300, c: 200 }]);
        let (stock, quern) = sessions(Setting { partitions, batch_rows, ..Setting::default() }, rows).await;
        let text = query(&mut random);
        let place = format!("seed {seed}, case {case}: {text}");
        match (answer(&stock, &text).await, answer(&quern, &text).await) {
            (Ok(expected), Ok(given)) => {
                assert_eq!(given, expected, "{place}");
                replaced += nodes(&quern, &text).await;
            }
            (Err(_), _) => failed += 1,
            (Ok(_), Err(error)) => panic!("{place}: {error}"),
        }
    }
    println!("{replaced} nodes replaced, {failed} queries that DataFusion refuses");
    assert!(replaced > 0);
}

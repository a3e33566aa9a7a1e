# SPDX-License-Identifier: Apache-2.0
"""The order of files in PostgreSQL's regression suite, and what is known of them."""

import re

# As parallel_schedule has it, one group a line; files of other versions are left out by themselves.
ORDER = """
test_setup
boolean char name varchar text int2 int4 int8 oid float4 float8 bit numeric txid uuid enum money rangetypes pg_lsn
regproc
strings md5 numerology point lseg line box path polygon circle date time timetz timestamp timestamptz interval inet
macaddr macaddr8 multirangetypes
geometry horology tstypes regex type_sanity opr_sanity misc_sanity comments expressions unicode xid mvcc database
stats_import
copy copyselect copydml copyencoding insert insert_conflict
create_function_c create_misc create_operator create_procedure create_table create_type create_schema
create_index create_index_spgist create_view index_including index_including_gist
create_aggregate create_function_sql create_cast constraints triggers select inherit typed_table vacuum drop_if_exists
updatable_views roleattributes create_am hash_func errors infinite_recurse
sanity_check
select_into select_distinct select_distinct_on select_implicit select_having subselect union case join aggregates
transactions random portals arrays btree_index hash_index update delete namespace prepared_xacts
brin gin gist spgist privileges init_privs security_label collate matview lock replica_identity rowsecurity
object_address tablesample groupingsets drop_operator password identity generated generated_stored join_hash
brin_bloom brin_multi
create_table_like alter_generic alter_operator misc async dbsize merge misc_functions sysviews tsrf tid tidscan
tidrangescan collate.utf8 collate.icu.utf8 incremental_sort create_role without_overlaps generated_virtual
rules psql psql_crosstab psql_pipeline amutils stats_ext collate.linux.utf8 collate.windows.win1252
select_parallel
write_parallel
vacuum_parallel
maintain_every
publication subscription
select_views portals_p2 foreign_key cluster dependency guc bitmapops combocid tsearch tsdicts foreign_data window xmlmap
functional_deps advisory_lock indirect_toast equivclass
json jsonb json_encoding jsonpath jsonpath_encoding jsonb_jsonpath sqljson sqljson_queryfuncs sqljson_jsontable
plancache limit plpgsql copy2 temp domain rangefuncs prepare conversion truncate alter_table sequence polymorphism
rowtypes returning largeobject with xml
partition_join partition_prune reloptions hash_part indexing partition_aggregate partition_info tuplesort explain
compression compression_pglz memoize stats predicate numa
event_trigger oidjoins
event_trigger_login
fast_default
tablespace
""".split()

# Files whose statements join, aggregate and sort, and those that make their tables.
PART = """
test_setup char varchar text int2 int4 int8 float8 numeric uuid date timestamp timestamptz insert copy create_misc
create_type create_index create_view create_aggregate create_function_sql constraints triggers select inherit
select_into select_distinct select_distinct_on select_implicit select_having subselect union case join aggregates arrays
portals update delete brin collate matview rowsecurity tablesample groupingsets join_hash misc misc_functions sysviews
tsrf incremental_sort rules select_parallel select_views portals_p2 foreign_key tsearch window functional_deps
equivclass jsonb plancache limit plpgsql temp rangefuncs prepare alter_table polymorphism rowtypes returning with
partition_join partition_prune partition_aggregate indexing tuplesort memoize stats_ext merge oidjoins
""".split()

# Files that do not run, by reason.
LEFT_OUT = {
    "random": "draws numbers",
    "numa": "asks the machine",
}

# Lines of files that are left out, as patterns, by reason.
LINES_LEFT_OUT = {
    ("sqljson", r"SELECT .*::sqljson_mystr.*;"): "end a server of version 18.4",
    ("hash_part", r"SELECT satisfies_hash_partition\(.*VARIADIC NULL::int\[\]\);"): "ends a server of version 18.4",
}

# Differences that are not wrong: the file, a pattern of the statement, the reason.
EQUAL_KEYS = "rows with equal keys of a sort come in another order"
FIRST_OF_EQUALS = "the result depends on the order of rows with equal keys"
SHOWS_PLAN = "a function shows the plan, or looks for a node in it"
DIFFERENCES = [
    ("*", r"ORDER BY \S+ <-> ", EQUAL_KEYS),
    ("*", r"ORDER BY \(home_base\[0\]\)\[0\]", EQUAL_KEYS),
    ("groupingsets", r"order by coalesce\(a,0\)\+coalesce\(b,0\)", EQUAL_KEYS),
    ("window", r"ORDER BY rank\(\) OVER w", EQUAL_KEYS),
    ("window", r"(?i)\b(first_value|last_value|nth_value|lead|lag|row_number)\b", FIRST_OF_EQUALS),
    ("tsrf", r"SELECT DISTINCT ON \(g\) a, b, generate_series", FIRST_OF_EQUALS),
    ("psql_crosstab", r"string_agg\(i::text, E'", FIRST_OF_EQUALS),
    ("polymorphism", r"\bmyagg\w+\(", FIRST_OF_EQUALS),
    ("sqljson", r"JSON_ARRAYAGG\(bar\)", FIRST_OF_EQUALS),
    ("uuid", r"uuidv7\(", "draws numbers"),
    ("sysviews", r"name = 'Caller tuples'", "asks for the memory of PostgreSQL's own sort"),
    ("join_hash", r"hash_join_batches\(", SHOWS_PLAN),
    ("plpgsql", r"UPDATE transition_table_base", SHOWS_PLAN),
]


def allows(reason, off, force):
    """Whether outputs differ as the reason says."""
    if reason == EQUAL_KEYS:
        return sorted(off) == sorted(force)
    return reason != FIRST_OF_EQUALS or len(off) == len(force)


def order_of(names):
    known = [name for name in ORDER if name in names]
    return known + sorted(set(names) - set(known))


def without_lines(name, text):
    left_out = [pattern for file, pattern in LINES_LEFT_OUT if file == name]
    return "\n".join(line for line in text.split("\n") if not any(re.match(pattern, line) for pattern in left_out))


def reason_of(name, statement):
    for file, pattern, reason in DIFFERENCES:
        if file in (name, "*") and re.search(pattern, statement, re.DOTALL):
            return reason
    return None

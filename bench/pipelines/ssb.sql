-- SPDX-License-Identifier: Apache-2.0
--
-- The five tables of the Star Schema Benchmark (O'Neil, O'Neil, Chen: Star Schema Benchmark, revision 3, 2009) from the
-- tables of TPC-H, which stand in the schema `tpch`. query_tables.py runs this with DuckDB and keeps the tables as
-- Parquet files. Each is sorted by its key, so that the files are the same every time.
--
-- The names of columns, their types (integers, money in cents, dates as yyyymmdd, strings), their domains and the
-- selectivity of each condition are those of the benchmark. The rows are not those of its own generator:
--
-- * One in five customers and suppliers is kept, which gives the benchmark's 30,000 and 2,000 times the scale factor.
--   A key of an order is taken modulo that number, so that every order keeps a customer and a supplier.
-- * There are 200,000 parts times the scale factor. The benchmark has 200,000 * (1 + log2(scale factor)), which is the
--   same at scale factor 1 only.
-- * A line item has one of the four suppliers that TPC-H gives its part; the benchmark draws them independently.
-- * TPC-H has no cities and 25 brands. A city is the nation and the last digit of the key. A category is a brand of
--   TPC-H, and its 40 brands come from the bits of a product of the part's key.
-- * Names, addresses and telephone numbers are the longer ones of TPC-H. A part's colour is the first word of its name.
-- * `date` has the 2,557 days from 1992-01-01 to 1998-12-31 and no d_holidayfl. d_weeknuminyear counts seven days each
--   from 1 January.

CREATE TABLE customer AS
SELECT c_custkey::INTEGER AS c_custkey, c_name, c_address,
       rpad(n_name, 9, ' ')[:9] || (c_custkey % 10) AS c_city, n_name AS c_nation, r_name AS c_region,
       c_phone, c_mktsegment
FROM tpch.customer JOIN tpch.nation ON c_nationkey = n_nationkey JOIN tpch.region ON n_regionkey = r_regionkey
WHERE c_custkey <= (SELECT count(*) // 5 FROM tpch.customer)
ORDER BY c_custkey;

CREATE TABLE supplier AS
SELECT s_suppkey::INTEGER AS s_suppkey, s_name, s_address,
       rpad(n_name, 9, ' ')[:9] || (s_suppkey % 10) AS s_city, n_name AS s_nation, r_name AS s_region,
       s_phone
FROM tpch.supplier JOIN tpch.nation ON s_nationkey = n_nationkey JOIN tpch.region ON n_regionkey = r_regionkey
WHERE s_suppkey <= (SELECT count(*) // 5 FROM tpch.supplier)
ORDER BY s_suppkey;

CREATE TABLE part AS
SELECT p_partkey::INTEGER AS p_partkey, split_part(p_name, ' ', 2) || ' ' || split_part(p_name, ' ', 3) AS p_name,
       'MFGR#' || p_brand[7] AS p_mfgr, 'MFGR#' || p_brand[7:8] AS p_category,
       'MFGR#' || p_brand[7:8] || (p_partkey * 2654435761 % 4294967296 // 65536 % 40 + 1) AS p_brand1,
       split_part(p_name, ' ', 1) AS p_color, p_type, p_size::INTEGER AS p_size, p_container
FROM tpch.part
ORDER BY p_partkey;

CREATE TABLE date AS
SELECT strftime(day, '%Y%m%d')::INTEGER AS d_datekey, strftime(day, '%B %-d, %Y') AS d_date,
       dayname(day) AS d_dayofweek, monthname(day) AS d_month, year(day)::INTEGER AS d_year,
       (year(day) * 100 + month(day))::INTEGER AS d_yearmonthnum, strftime(day, '%b%Y') AS d_yearmonth,
       (dayofweek(day) + 1)::INTEGER AS d_daynuminweek, day(day)::INTEGER AS d_daynuminmonth,
       dayofyear(day)::INTEGER AS d_daynuminyear, month(day)::INTEGER AS d_monthnuminyear,
       ((dayofyear(day) - 1) // 7 + 1)::INTEGER AS d_weeknuminyear,
       CASE WHEN month(day) <= 3 THEN 'Winter' WHEN month(day) = 4 THEN 'Spring' WHEN month(day) <= 8 THEN 'Summer'
            WHEN month(day) <= 10 THEN 'Fall' ELSE 'Christmas' END AS d_sellingseason,
       (dayofweek(day) = 6)::INTEGER AS d_lastdayinweekfl, (day = last_day(day))::INTEGER AS d_lastdayinmonthfl,
       (dayofweek(day) BETWEEN 1 AND 5)::INTEGER AS d_weekdayfl
FROM (SELECT unnest(range(DATE '1992-01-01', DATE '1999-01-01', INTERVAL 1 DAY))::DATE AS day)
ORDER BY d_datekey;

-- lo_supplycost is six tenths of the part's price, as in the benchmark's generator.
CREATE TABLE lineorder AS
SELECT l_orderkey AS lo_orderkey, l_linenumber AS lo_linenumber,
       ((o_custkey - 1) % (SELECT count(*) FROM customer) + 1)::INTEGER AS lo_custkey,
       l_partkey::INTEGER AS lo_partkey,
       ((l_suppkey - 1) % (SELECT count(*) FROM supplier) + 1)::INTEGER AS lo_suppkey,
       strftime(o_orderdate, '%Y%m%d')::INTEGER AS lo_orderdate, o_orderpriority AS lo_orderpriority,
       o_shippriority AS lo_shippriority, l_quantity::INTEGER AS lo_quantity,
       (l_extendedprice * 100)::INTEGER AS lo_extendedprice, (o_totalprice * 100)::INTEGER AS lo_ordtotalprice,
       (l_discount * 100)::INTEGER AS lo_discount,
       ((l_extendedprice * 100)::BIGINT * (l_discount * -100 + 100)::BIGINT // 100)::INTEGER AS lo_revenue,
       ((l_extendedprice * 100)::BIGINT // l_quantity::BIGINT * 6 // 10)::INTEGER AS lo_supplycost,
       (l_tax * 100)::INTEGER AS lo_tax, strftime(l_commitdate, '%Y%m%d')::INTEGER AS lo_commitdate,
       l_shipmode AS lo_shipmode
FROM tpch.lineitem JOIN tpch.orders ON l_orderkey = o_orderkey
ORDER BY lo_orderkey, lo_linenumber;

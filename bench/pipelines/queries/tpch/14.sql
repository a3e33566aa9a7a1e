-- Both sums become doubles before the division, since the engines divide decimals to different numbers of digits.
SELECT 100.00 * CAST(sum(CASE WHEN p_type LIKE 'PROMO%' THEN l_extendedprice * (1 - l_discount) ELSE 0 END) AS DOUBLE)
       / CAST(sum(l_extendedprice * (1 - l_discount)) AS DOUBLE) AS promo_revenue
FROM lineitem, part
WHERE l_partkey = p_partkey
  AND l_shipdate >= DATE '1995-09-01'
  AND l_shipdate < DATE '1995-10-01'

-- Order priority checking
-- churn orders WHERE o_orderdate BETWEEN '1993-07-01' AND '1993-09-30'
-- churn lineitem WHERE l_commitdate < l_receiptdate AND l_orderkey IN (
--     SELECT o_orderkey FROM orders WHERE o_orderdate BETWEEN '1993-07-01' AND '1993-09-30')
SELECT o_orderpriority, count(*) AS order_count
FROM orders
WHERE o_orderdate >= date '1993-07-01'
  AND o_orderdate < date '1993-07-01' + interval '3' month
  AND EXISTS (
      SELECT *
      FROM lineitem
      WHERE l_orderkey = o_orderkey AND l_commitdate < l_receiptdate)
GROUP BY o_orderpriority
ORDER BY o_orderpriority

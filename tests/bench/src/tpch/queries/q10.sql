-- Returned item reporting
-- churn customer WHERE c_custkey IN (SELECT c_custkey FROM q10)
-- churn orders WHERE o_custkey IN (SELECT c_custkey FROM q10)
--     AND o_orderdate BETWEEN '1993-10-01' AND '1993-12-31'
-- churn lineitem WHERE l_orderkey IN (SELECT o_orderkey FROM orders JOIN q10 ON o_custkey = c_custkey
--     WHERE o_orderdate BETWEEN '1993-10-01' AND '1993-12-31')
SELECT c_custkey, c_name,
       sum(l_extendedprice * (1 - l_discount)) AS revenue,
       c_acctbal, n_name, c_address, c_phone, c_comment
FROM customer, orders, lineitem, nation
WHERE c_custkey = o_custkey
  AND l_orderkey = o_orderkey
  AND o_orderdate >= date '1993-10-01'
  AND o_orderdate < date '1993-10-01' + interval '3' month
  AND l_returnflag = 'R'
  AND c_nationkey = n_nationkey
GROUP BY c_custkey, c_name, c_acctbal, c_phone, n_name, c_address, c_comment
ORDER BY revenue DESC, c_custkey, c_name, c_acctbal, n_name, c_address, c_phone, c_comment
LIMIT 20

{{ config(materialized='view') }}
select source from {{ ref('reached') }} order by n desc, source limit 1

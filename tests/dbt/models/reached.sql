{{ config(grants={'select': ['eddy_reader']}) }}
select source, count(*) as n from {{ ref('reach') }} group by source

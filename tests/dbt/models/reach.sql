{{ config(
    parameters={'changes': '1 day', 'timezone': 'UTC'},
    indexes=[{'columns': ['source', 'target'], 'unique': true}] + ([{'columns': ['weight']}] if var('with_weight') else [])
) }}
with recursive reach (source, target) as (
    select source, target from {{ source('graph', 'edge') }}
    union
    select reach.source, edge.target
    from reach join {{ source('graph', 'edge') }} on edge.source = reach.target
)
select
    source
    {%- if not var('without_target') %}, target{% endif %}
    {%- if var('with_weight') %}, source + target as weight{% endif %}
from reach
